# SPDX-License-Identifier: GPL-2.0
"""Simulated runs with known differences, effects of boots, modes, drift and outliers.

All sizes are logarithms: 0.01 is about 1 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .db import Database
from .reference import parse_size

Array = NDArray[np.float64]

#: All orders of a cycle with a control.
ORDERS = tuple("".join(p) + "".join(p)[::-1] for p in itertools.permutations("ABC"))


@dataclass(frozen=True)
class Scenario:
    """What a simulated machine does."""

    boots: int = 5
    cells: int = 12
    cycles: int = 8
    effect: float = 0.0  # of B
    control_effect: float = 0.0  # of A2, which is a fault of the experiment
    noise: float = 0.01  # of one leg
    #: The standard deviation over boots of a difference between two instances: what all cells of
    #: a boot share, and what each has of its own.
    boot_shared: float = 0.0
    boot_own: float = 0.006
    common: float = 0.02  # effect of a boot on all instances, which a ratio does not have
    #: Modes: a leg or, if they last, all legs of an instance in a boot and cell lose ``mode_gap``
    #: with this probability.
    mode_share_a: float = 0.0
    mode_share_b: float = 0.0
    mode_gap: float = 0.0
    mode_lasts: bool = False
    drift: float = 0.0  # linear over a boot, common to all instances
    walk: float = 0.0  # step of a random walk from leg to leg, common to all instances
    outliers: float = 0.0  # probability that a leg loses ``outlier_size``
    outlier_size: float = 0.0


def draw(scenario: Scenario, rng: np.random.Generator) -> tuple[Array, NDArray[np.int_]]:
    """Returns the logarithm of each leg, and its driver: 0 for A, 1 for B, 2 for the control.

    The axes of both are cells, boots, cycles and positions.
    """
    s = scenario
    orders = np.array([["ABC".index(letter) for letter in order] for order in ORDERS])
    driver = orders[rng.integers(len(ORDERS), size=(s.cells, s.boots, s.cycles))]
    shape = driver.shape
    x = s.noise * rng.standard_normal(shape)
    x += s.common * rng.standard_normal((1, s.boots, 1, 1))
    # Two instances differ by sqrt(2) times what one has.
    shared = s.boot_shared / math.sqrt(2) * rng.standard_normal((1, s.boots, 3))
    own = s.boot_own / math.sqrt(2) * rng.standard_normal((s.cells, s.boots, 3))
    instance = shared + own + np.array([0.0, s.effect, s.control_effect])
    if s.mode_gap:
        share = np.array([s.mode_share_a, s.mode_share_b, s.mode_share_a])
        if s.mode_lasts:
            slow = rng.random((s.cells, s.boots, 3)) < share
            instance = instance - s.mode_gap * slow
        else:
            x -= s.mode_gap * (rng.random(shape) < share[driver])
    flat = instance.reshape(s.cells, s.boots, 1, 3)
    x += np.take_along_axis(np.broadcast_to(flat, (*shape[:3], 3)), driver, axis=3)
    legs = s.cycles * shape[3]
    if s.drift:
        x += s.drift * np.linspace(-0.5, 0.5, legs).reshape(1, 1, s.cycles, shape[3])
    if s.walk:
        steps = s.walk * rng.standard_normal((s.cells, s.boots, legs))
        x += np.cumsum(steps, axis=2).reshape(shape)
    if s.outliers:
        x -= s.outlier_size * (rng.random(shape) < s.outliers)
    return x, driver


def differences(x: Array, driver: NDArray[np.int_], other: int = 1) -> Array:
    """Returns log(B/A) of each cycle, or of the control with ``other`` 2."""
    b, a = driver == other, driver == 0
    return (x * b).sum(axis=3) / b.sum(axis=3) - (x * a).sum(axis=3) / a.sum(axis=3)


#: Cells for simulated runs; their IOPS are made up.
def matrix(
    jobs: Sequence[int] = (1, 2),
    rw: Sequence[str] = ("randread", "randwrite"),
    bs: Sequence[str] = ("4k", "256k"),
    depth: Sequence[int] = (1, 8, 32),
) -> dict[str, dict[str, Any]]:
    """Returns the cells of a matrix, with their axes."""
    return {
        f"{r} {b} depth {d} jobs {j}": {"jobs": j, "rw": r, "bs": b, "depth": d}
        for j, r, b, d in itertools.product(jobs, rw, bs, depth)
    }


PERCENTILES = {"50": 1.0, "90": 1.25, "99": 1.9, "99.9": 4.0, "99.99": 9.0}


def write_run(
    path: Path | str,
    scenario: Scenario,
    *,
    name: str = "simulated",
    cells: Mapping[str, Mapping[str, Any]] | None = None,
    effects: Mapping[str, float] | None = None,
    modal: Mapping[str, Scenario] | None = None,
    plan: Mapping[str, Any] | None = None,
    machine: Mapping[str, Any] | None = None,
    started: float = 1_700_000_000.0,
    rejected: float = 0.02,
    control: bool = True,
    complete: bool = True,
    skip: Sequence[str] = (),
    seed: int = 1,
) -> str:
    """Writes a simulated run to a database, which is created if it does not exist.

    ``effects`` adds a difference to single cells, ``modal`` gives single cells a scenario of their
    own; ``skip`` has cells that the plan has but that are not run; a share of ``rejected`` cycles
    is rejected by the gate and run again.  A covariate "hugepages" tells in which mode an instance
    is, "temperature" tells nothing, "cstate" is absent.
    """
    rng = np.random.default_rng(seed)
    cells = dict(cells or matrix())
    if scenario.cells != len(cells):
        raise ValueError(f"the scenario has {scenario.cells} cells, {len(cells)} are named")
    x, driver = draw(scenario, rng)
    for index, cell in enumerate(cells):
        if modal and cell in modal:
            x[index : index + 1], driver[index : index + 1] = draw(modal[cell], rng)
        if effects and cell in effects:
            x[index] += effects[cell] * (driver[index] == 1)
    full_plan = {
        "drivers": {"A": {"name": "null_blk"}, "B": {"name": "rnull"}},
        "boots": scenario.boots,
        "cycles": scenario.cycles,
        "margin": 0.01,
        "alpha": 0.05,
        "control": control,
        "headline": {"metric": "iops", "test": "t", "beside": ["p50", "p99"]},
        "gate": {"max_steal": 0.01, "max_load": 1.0},
        "tags": ["simulated"],
        **(plan or {}),
    }
    with Database(path, create=True, durable=False) as database:
        run = database.start_run(
            full_plan,
            name=name,
            machine=machine or {"id": "simulated", "name": "simulated machine", "cpus": 2},
            versions={"fio": "fio-simulated"},
            cells=cells,
            started=started,
        )
        now = started
        names = list(cells)
        for boot in range(scenario.boots):
            row = database.start_boot(
                run,
                boot_id=f"{run}-{boot}",
                kernel="7.3.0-simulated",
                cmdline="quiet",
                facts={"microcode": "0x1"},
                started=now,
            )
            now += 60
            todo = [
                (cycle, int(cell))
                for cycle in range(scenario.cycles)
                for cell in rng.permutation(len(names))
            ]
            while todo:
                cycle, cell = todo.pop(0)
                if names[cell] in skip:
                    continue
                keep = rng.random() >= rejected
                letters = "".join("ABC"[d] for d in driver[cell, boot, cycle])
                kept_letters = letters if control else letters.replace("C", "")
                number = database.start_cycle(
                    run,
                    row,
                    names[cell],
                    cycle + 1,
                    kept_letters,
                    gate_before={"steal": 0.0, "load": 0.1},
                    started=now,
                )
                base = _base_iops(cells[names[cell]])
                own = (modal or {}).get(names[cell], scenario)
                position = 0
                for leg, letter in enumerate(letters):
                    if letter == "C" and not control:
                        continue
                    position += 1
                    value = float(x[cell, boot, cycle, leg])
                    iops = base * math.exp(value)
                    block = _block_size(cells[names[cell]])
                    mean = 1e9 / iops * cells[names[cell]].get("depth", 1)
                    database.add_sample(
                        number,
                        position,
                        iops=iops,
                        bandwidth=iops * block,
                        latency={
                            "mean": mean,
                            **{p: mean * f for p, f in PERCENTILES.items()},
                            "ios": round(5 * iops),
                        },
                        raw=f"raw/{number}-{position}.json",
                        started=now,
                        ended=now + 5,
                        covariates={
                            "hugepages": int(value > -own.mode_gap / 2 or not own.mode_gap),
                            "temperature": 50 + 5 * rng.random(),
                            "cstate": None,
                        },
                    )
                    now += 6
                database.end_cycle(
                    number,
                    "kept" if keep else "rejected",
                    reason=None if keep else "steal 3.1 % exceeds 1 %",
                    gate_after={"steal": 0.0 if keep else 0.031, "load": 0.1},
                    ended=now,
                )
                if not keep:
                    todo.append((cycle, cell))
        if complete:
            database.end_run(run, "complete", ended=now)
    return run


def _block_size(axes: Mapping[str, Any]) -> int:
    return parse_size(str(axes.get("bs", "4k")))


def _base_iops(axes: Mapping[str, Any]) -> float:
    depth, jobs = axes.get("depth", 1), axes.get("jobs", 1)
    return 250e3 * jobs * min(depth, 8) ** 0.5 / (1 + _block_size(axes) / 16384)
