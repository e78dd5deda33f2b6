# SPDX-License-Identifier: GPL-2.0
"""Ranks the covariates of a cell with modes, and names the experiment that would decide.

A rank is no cause: covariates change together, and with the boot.  So the answer is an experiment
that sets the suspected cause, with what its outcome would mean.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import stats
from .analysis import CellResult, Metric, RunResult, analyse, join, select_run
from .db import DatabaseError, Run
from .modes import shares_by_boot

Labels = NDArray[np.int_]
Array = NDArray[np.float64]

#: Numbers with more values than this are divided into as many groups of equal size.
GROUPS = 4

#: A list of numbers, as a histogram of pages has it, is looked at number by number up to this.
MOST_NUMBERS = 32


@dataclass(frozen=True)
class Hypothesis:
    """A cause of modes, the covariates that point to it, and the experiment that sets it.

    Each arm has a name, a description, and what it overrides in the plan.  The predictions are
    what the modes do if the hypothesis is right.  Arms that a cycle can have of its own come by lot
    over the cycles; those that are a matter of the machine or of its disks, over the boots.
    """

    key: str
    covariates: str  # a regular expression
    text: str
    arms: tuple[tuple[str, str, dict[str, Any]], ...]
    predicts: str
    over: str  # 'cycles' or 'boots'
    #: The arm in which the samples of a boot scatter less if the hypothesis is right.
    quiet: int | None = 0


RELOAD = (
    ("stay", "disks made once in a boot", {"disk": {"reload": "boot"}}),
    ("anew", "modules and disks anew for each cycle", {"disk": {"reload": "cycle"}}),
)

#: An experiment has at least as many cycles in a boot, and boots where the arms are those of boots:
#: 8 boots have 70 ways to give the arms to them.
LEAST_CYCLES, LEAST_BOOTS = 6, 8

HYPOTHESES = (
    Hypothesis(
        "buffers",
        r"buffer_|huge_?pages",
        "The physical pages of the load generator's buffers decide the mode: how they fall on the "
        "sets of the caches and on memory channels.",
        (
            ("huge", "buffers in huge pages", {"load": {"huge_pages": True}}),
            ("small", "buffers in small pages", {"load": {"huge_pages": False}}),
        ),
        "with huge pages there is one mode, with small pages the mode changes from process to "
        "process",
        "cycles",
    ),
    Hypothesis(
        "placement",
        r"buddyinfo|free_kib|^device$|^instance$",
        "The memory of the disk decides the mode: where its pages were when it was filled.",
        RELOAD,
        "with disks that stay, the mode is that of the boot; with new disks it changes from cycle "
        "to cycle, at the same addresses of the modules",
        "boots",
    ),
    Hypothesis(
        "address",
        r"^module\..*address|load_address",
        "The address of the module's code or data decides the mode.",
        RELOAD,
        "with modules that stay, the mode is that of the boot; with modules that are loaded anew "
        "it goes with their address, and not with the free memory before",
        "boots",
    ),
    Hypothesis(
        "clock",
        r"clock|temperature|idle|cstate|boost|governor|freq",
        "The clock of the CPUs, their temperature or their idle states decide the mode.",
        (
            (
                "fixed",
                "nominal clock, no boost",
                {"machine": {"boost": "off", "clock_khz": "base"}},
            ),
            ("boost", "boost", {"machine": {"boost": "on", "clock_khz": "keep"}}),
        ),
        "at a fixed clock there is one mode",
        "boots",
    ),
    Hypothesis(
        "lock",
        r"^\(jobs\)$",
        "Jobs that share a lock or a cache line have two stable phases.",
        (),  # filled in for the cell
        "one job has no modes, whatever the memory is; several jobs have them",
        "cycles",
    ),
    Hypothesis(
        "drift",
        r"uptime|time in the boot|cycle number",
        "The machine changes during a boot.",
        (
            ("early", "start at once", {"machine": {"settle": 0.0}}),
            ("late", "wait ten minutes first", {"machine": {"settle": 600.0}}),
        ),
        "after the wait there is one mode",
        "boots",
        1,
    ),
    Hypothesis(
        "process",
        r"position|previous driver|usr_cpu|sys_cpu|ctx|majf|minf",
        "What ran before the sample, or the process of the load generator, decides the mode.",
        (
            ("short", "short samples", {"load": {"runtime": 2.0}}),
            ("long", "long samples", {"load": {"runtime": 20.0}}),
        ),
        "long samples have modes with the same shares if the process is decisive, and smear them "
        "out if the state changes by itself",
        "cycles",
        None,
    ),
)


@dataclass
class Rank:
    """What a covariate explains of the mode."""

    name: str
    kind: str  # 'within boots', 'between boots', or 'boot'
    explained: float  # share of the entropy of the mode, less what chance explains
    p: float
    p_adjusted: float = 1.0


@dataclass
class Explanation:
    result: RunResult
    cell: CellResult
    ranks: list[Rank] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)

    @property
    def significant(self) -> list[Rank]:
        return [r for r in self.ranks if r.kind != "boot" and r.p_adjusted <= self.result.alpha]


def _entropy(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns for each row the sum of -n log(n/N), in nats."""
    total = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(counts > 0, counts * np.log(counts), 0).sum(axis=-1)
        return np.where(total > 0, total * np.log(np.maximum(total, 1)), 0) - inner


def information(labels: Labels, groups: Labels, strata: Labels) -> float:
    """Returns the share of the entropy of labels within strata that groups explain."""
    k, g, s = (int(a.max()) + 1 for a in (labels, groups, strata))
    table = np.bincount((strata * g + groups) * k + labels, minlength=s * g * k)
    table = table.reshape(s, g, k).astype(float)
    before = _entropy(table.sum(axis=1)).sum()
    return float(1 - _entropy(table).sum() / before) if before > 0 else 0.0


def _grouped(values: Sequence[str | None]) -> Labels | None:
    """Returns the group of each value; None if values differ in nearly each sample."""
    present = [v for v in values if v is not None]
    numbers: list[float] | None
    try:
        numbers = [float(v) for v in present]
    except ValueError:
        numbers = None
    if numbers is not None and len(set(numbers)) > GROUPS:
        limits = np.unique(np.quantile(numbers, np.linspace(0, 1, GROUPS + 1)[1:-1]))
        groups = [
            0 if v is None else 1 + int(np.searchsorted(limits, float(v), side="right"))
            for v in values
        ]
    else:
        known = {v: i for i, v in enumerate(sorted(set(present)), 1)}
        if len(known) > max(8, len(values) // 5):
            return None
        groups = [0 if v is None else known[v] for v in values]
    return np.unique(np.array(groups), return_inverse=True)[1]


def _score(
    labels: Labels,
    groups: Labels,
    strata: Labels,
    boots: Labels,
    draws: int,
    rng: np.random.Generator,
) -> tuple[str, float, float]:
    """Returns the kind of a covariate, what it explains beyond chance, and its p-value.

    What changes within a boot is compared with permutations within boots, so that differences of
    boots do not count for it.  What is constant in a boot is compared with permutations of boots.
    """
    place = strata * (int(boots.max()) + 1) + boots
    varies = any(np.unique(groups[place == p]).size > 1 for p in np.unique(place))
    observed = information(labels, groups, strata)
    chance = np.empty(draws)
    if varies:
        rows = [np.flatnonzero(place == p) for p in np.unique(place)]
        for i in range(draws):
            permuted = groups.copy()
            for row in rows:
                permuted[row] = groups[rng.permutation(row)]
            chance[i] = information(labels, permuted, strata)
    else:
        of_place = {int(p): int(groups[place == p][0]) for p in np.unique(place)}
        for i in range(draws):
            moved = {}
            for stratum in np.unique(strata):
                own = [int(p) for p in np.unique(place[strata == stratum])]
                other = rng.permutation(own)
                moved |= {p: of_place[int(q)] for p, q in zip(own, other, strict=True)}
            permuted = np.array([moved[int(p)] for p in place])
            chance[i] = information(labels, permuted, strata)
    p = (int((chance >= observed - 1e-12).sum()) + 1) / (draws + 1)
    kind = "within boots" if varies else "between boots"
    return kind, max(0.0, observed - float(chance.mean())), p


def analyse_cell(
    db_path: Path | str, cell: str, run: str | None = None, *, draws: int = 499, seed: int = 1
) -> Explanation:
    """Ranks the covariates of a cell.  A cell without modes has no ranks."""
    found = select_run(db_path, run)
    if cell not in found.cells:
        near = [name for name in found.cells if cell in name]
        hint = f"; there are {join(near or found.cells)}"
        raise DatabaseError(f"{db_path}: run {found.name} has no cell {cell!r}{hint}")
    result = analyse(found, seed=seed, draws=200)
    chosen = next(c for c in result.cells if c.name == cell)
    explanation = Explanation(result, chosen)
    if not chosen.has_modes:
        return explanation
    rng = np.random.default_rng(seed)
    columns, labels, strata, boots = _columns(result, chosen)
    for name, values in columns.items():
        if all(v is None for v in values):
            explanation.absent.append(name)
            continue
        if len(set(values)) == 1:
            explanation.constant.append(name)
            continue
        groups = _grouped(values)
        if groups is None:
            explanation.unusable.append(name)
            continue
        if groups.max() == 0:
            explanation.constant.append(name)
            continue
        kind, explained, p = _score(labels, groups, strata, boots, draws, rng)
        explanation.ranks.append(Rank(name, kind, explained, p))
    explanation.ranks.append(_boot_rank(labels, boots, strata, draws, rng))
    adjusted = stats.benjamini_hochberg([r.p for r in explanation.ranks])
    for rank, p in zip(explanation.ranks, adjusted, strict=True):
        rank.p_adjusted = float(p)
    explanation.ranks.sort(key=lambda r: (r.p_adjusted > result.alpha, -r.explained))
    return explanation


def _boot_rank(
    labels: Labels, boots: Labels, strata: Labels, draws: int, rng: np.random.Generator
) -> Rank:
    observed = information(labels, boots, strata)
    chance = []
    for _ in range(draws):
        permuted = labels.copy()
        for stratum in np.unique(strata):
            row = np.flatnonzero(strata == stratum)
            permuted[row] = labels[rng.permutation(row)]
        chance.append(information(permuted, boots, strata))
    p = (sum(c >= observed - 1e-12 for c in chance) + 1) / (draws + 1)
    return Rank("(the boot itself)", "boot", max(0.0, observed - float(np.mean(chance))), p)


def _columns(
    result: RunResult, cell: CellResult
) -> tuple[dict[str, list[str | None]], Labels, Labels, Labels]:
    """Returns the covariates of the samples of drivers with modes, their modes, drivers, boots."""
    rows: list[dict[str, str | None]] = []
    labels, strata, boots = [], [], []
    drivers = [d for d, m in cell.modes.items() if m.found]
    began = {b.number: b.started for b in result.run.boots}
    for cycle in result.run.cycles:
        if cycle.cell != cell.name or cycle.state != "kept":
            continue
        before = "none"
        for sample in cycle.samples:
            if sample.driver in drivers:
                modes = cell.modes[sample.driver].modes
                value = math.log(result.metric.value(sample))
                labels.append(int(modes.label([value])[0]))
                strata.append(drivers.index(sample.driver))
                boots.append(cycle.boot)
                row = dict(sample.covariates)
                row["(position in the cycle)"] = str(sample.position)
                row["(previous driver)"] = before
                row["(time in the boot)"] = str(sample.started - began[cycle.boot])
                row["(cycle number)"] = str(cycle.number)
                rows.append(row)
            before = sample.driver
    columns: dict[str, list[str | None]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        columns |= _split(name, values)
    return (
        columns,
        np.array(labels),
        np.array(strata),
        np.unique(np.array(boots), return_inverse=True)[1],
    )


def _split(name: str, values: list[str | None]) -> dict[str, list[str | None]]:
    """Makes a column of each number of a list such as "12,3,0"."""
    lists = [v.split(",") if v is not None else None for v in values]
    present = [x for x in lists if x is not None]
    size = len(present[0]) if present else 1
    if size < 2 or any(len(x) != size for x in present):
        return {name: values}
    if not all(re.fullmatch(r"-?\d+(\.\d+)?", n) for x in present for n in x):
        return {name: values}
    return {
        f"{name}[{i}]": [None if x is None else x[i] for x in lists]
        for i in range(min(size, MOST_NUMBERS))
    }


def hypotheses(explanation: Explanation) -> list[Hypothesis]:
    """Returns the hypotheses that the ranks point to, the strongest first.

    Where no covariate explains the modes, what remains is the lock, if there are several jobs, and
    the memory.
    """
    found = []
    for rank in explanation.significant:
        for hypothesis in HYPOTHESES:
            if re.search(hypothesis.covariates, rank.name) and hypothesis not in found:
                found.append(hypothesis)
    rest = ["lock", "placement"] if _jobs(explanation.cell) > 1 else ["placement"]
    for key in rest:
        hypothesis = next(h for h in HYPOTHESES if h.key == key)
        if hypothesis not in found:
            found.append(hypothesis)
    return found


def _jobs(cell: CellResult) -> int:
    try:
        return int(cell.axes.get("jobs", 1))
    except (TypeError, ValueError):
        return 1


def arms(explanation: Explanation, hypothesis: Hypothesis) -> list[tuple[str, str, dict[str, Any]]]:
    """Returns the arms of an experiment: a name, a description, and what a plan overrides."""
    cell = explanation.cell
    # That of an experiment is named after its arm.
    whole = cell.name.partition("@")[0]
    cells = {"matrix": {"cells": [whole]}}
    if hypothesis.key != "lock":
        return [(name, text, {**cells, **override}) for name, text, override in hypothesis.arms]
    one = re.sub(r"(\bj|jobs )\d+\b", r"\g<1>1", whole)
    return [
        ("one", "one job", {"matrix": {"cells": [one]}}),
        ("all", f"{_jobs(cell)} jobs", cells),
    ]


def _is_set(plan: dict[str, Any], override: dict[str, Any]) -> bool:
    """Whether the plan of the run already has what an arm overrides."""
    config = plan.get("config", {})
    for section, values in override.items():
        for key, value in values.items():
            if (section, key) != ("matrix", "cells") and config.get(section, {}).get(key) != value:
                return False
    return True


def experiment(
    db_path: Path | str, cell: str, run: str | None = None, key: str | None = None
) -> dict[str, Any] | None:
    """Returns the experiment that decides about a hypothesis, for ``plan.make_experiment()``.

    Without a key it is the hypothesis that the ranks point to.  Returns None if the cell has no
    modes.
    """
    explanation = analyse_cell(db_path, cell, run)
    if not explanation.cell.has_modes:
        return None
    if key is None:
        hypothesis = hypotheses(explanation)[0]
    else:
        known = {h.key: h for h in HYPOTHESES}
        if key not in known:
            raise ValueError(f"there is no hypothesis {key!r}; there are {join(known)}")
        hypothesis = known[key]
    if hypothesis.key == "lock" and _jobs(explanation.cell) < 2:
        raise ValueError(f"{cell} has one job, which shares no lock")
    plan = explanation.result.run.plan
    cycles = max(LEAST_CYCLES, int(plan.get("cycles", 0)))
    boots = int(plan.get("boots", 5))
    if hypothesis.over == "boots":
        boots = max(LEAST_BOOTS, boots + boots % 2)
    return {
        "hypothesis": hypothesis.key,
        "text": hypothesis.text,
        "predicts": hypothesis.predicts,
        "quiet": hypothesis.quiet,
        "over": hypothesis.over,
        "set": {"cycles": cycles, "boots": boots},
        "arms": [
            {"name": name, "text": text, "set": override}
            for name, text, override in arms(explanation, hypothesis)
        ],
    }


# What an experiment shows.


@dataclass(frozen=True)
class Comparison:
    """How much the samples of a boot scatter in the arms of an experiment, for one driver."""

    driver: str
    spread: tuple[float, float]  # in the arms: standard deviations of logarithms
    p: float  # that the arms do not differ, by permutation of what was given to them by lot

    @property
    def larger(self) -> int:
        return int(self.spread[1] > self.spread[0])


def _residuals(run: Run, metric: Metric, arm: int, driver: str) -> dict[int, list[Array]]:
    """Returns for each boot the samples of each cycle, less the median of the boot."""
    names = {cell["name"] for cell in run.plan["cells"] if cell["arm"] == arm}
    found: dict[int, list[Array]] = {}
    for cycle in run.cycles:
        if cycle.cell not in names or cycle.state != "kept":
            continue
        values = [metric.value(s) for s in cycle.samples if s.driver == driver]
        if values and None not in values:
            found.setdefault(cycle.boot, []).append(np.log(values))
    for cycles in found.values():
        middle = np.median(np.concatenate(cycles))
        cycles[:] = [c - middle for c in cycles]
    return found


def _root_mean_square(x: Sequence[Array]) -> float:
    # Samples that are all alike have no logarithm of their spread.
    return max(1e-9, math.sqrt(float(np.mean(np.concatenate(x) ** 2))))


def compare_arms(
    run: Run, metric: Metric, driver: str, draws: int, rng: np.random.Generator
) -> Comparison | None:
    """Compares the spread within boots of the two arms; None if an arm has too few samples.

    The test permutes what the lot decided: which cycles of a boot, or which boots, had which arm.
    """
    both = [_residuals(run, metric, arm, driver) for arm in (0, 1)]
    units: list[list[Array]]
    if run.plan["arms"]["over"] == "boots":
        units = [boot for arm in both for boot in arm.values()]
        labels = np.repeat([0, 1], [len(arm) for arm in both])
        strata = np.zeros(len(units), int)
        score = np.array([math.log(_root_mean_square(unit)) for unit in units])

        def statistic(chosen: Labels) -> float:
            return float(score[chosen == 1].mean() - score[chosen == 0].mean())
    else:
        boots = sorted(set(both[0]) & set(both[1]))
        units = [[cycle] for boot in boots for arm in both for cycle in arm[boot]]
        labels = np.array([a for b in boots for a in (0, 1) for _ in both[a][b]], int)
        strata = np.array([b for b in boots for arm in both for _ in arm[b]], int)
        square = np.array([float((unit[0] ** 2).sum()) for unit in units])
        size = np.array([unit[0].size for unit in units])

        def statistic(chosen: Labels) -> float:
            ends = [square[chosen == a].sum() / size[chosen == a].sum() for a in (0, 1)]
            return 0.5 * math.log(max(ends[1], 1e-18) / max(ends[0], 1e-18))

    if min(np.count_nonzero(labels == a) for a in (0, 1)) < 2:
        return None
    spread = tuple(
        _root_mean_square([x for u, a in zip(units, labels, strict=True) if a == arm for x in u])
        for arm in (0, 1)
    )
    observed = abs(statistic(labels))
    hits = 0
    for chosen in (permutations := list(_permutations(labels, strata, draws, rng))):
        hits += abs(statistic(chosen)) >= observed - 1e-12
    return Comparison(driver, spread, hits / len(permutations))


def _permutations(
    labels: Labels, strata: Labels, draws: int, rng: np.random.Generator
) -> Iterator[Labels]:
    """Yields all ways to give the labels to one stratum, or the given one and random ones."""
    ones = int(labels.sum())
    if np.unique(strata).size == 1 and math.comb(labels.size, ones) <= draws:
        for chosen in itertools.combinations(range(labels.size), ones):
            permuted = np.zeros_like(labels)
            permuted[list(chosen)] = 1
            yield permuted
        return
    rows = [np.flatnonzero(strata == s) for s in np.unique(strata)]
    yield labels
    for _ in range(draws):
        permuted = labels.copy()
        for row in rows:
            permuted[row] = labels[rng.permutation(row)]
        yield permuted


def outcome(
    db_path: Path | str, run: str | None = None, *, draws: int = 4999, seed: int = 1
) -> str:
    """Returns in words what an experiment has shown."""
    found = select_run(db_path, run)
    plan = found.plan
    if "arms" not in plan:
        raise DatabaseError(f"{db_path}: run {found.name} is no experiment")
    result = analyse(found, seed=seed, draws=0)
    design, alpha = plan["arms"], result.alpha
    rng = np.random.default_rng(seed)
    lines = [
        f"{found.name} ({_boots(result)})",
        "",
        f"The question: {design['text']}",
        f"If that is right: {design['predicts']}.",
        f"The arms came by lot over the {design['over']}.",
        "",
    ]
    modes_in: set[int] = set()
    for arm, each in enumerate(design["arms"]):
        lines.append(f"{each['name']}: {each['text']}")
        names = [cell["name"] for cell in plan["cells"] if cell["arm"] == arm]
        for cell in (c for c in result.cells if c.name in names):
            lines += _say_arm(result, cell)
            if any(cell.modes[d].found for d in "AB" if d in cell.modes):
                modes_in.add(arm)
    compared = [
        c for d in "AB" if (c := compare_arms(found, result.metric, d, draws, rng)) is not None
    ]
    adjusted = stats.benjamini_hochberg([c.p for c in compared])
    differ = set()
    lines.append("")
    for each, p in zip(compared, adjusted, strict=True):
        first, second = (100 * s for s in each.spread)
        lines.append(
            f"{result.name_of(each.driver)}: samples of a boot scatter by {first:.2g} % and"
            f" {second:.2g} % (permutation test, adjusted: p = {p:.2g})"
        )
        if p <= alpha:
            differ.add(each.larger)
    lines += ["", _verdict(design, modes_in, differ, bool(compared))]
    if found.state != "complete":
        lines.append("The experiment is not complete.")
    return "\n".join(lines) + "\n"


def _say_arm(result: RunResult, cell: CellResult) -> list[str]:
    lines = []
    for driver in "AB":
        modes, name = cell.modes.get(driver), result.name_of(driver)
        if modes is None:
            lines.append(f"  {name}: not measured")
        elif modes.dip is None:
            lines.append(f"  {name}: too few samples to look for modes")
        elif not modes.found:
            lines.append(
                f"  {name}: no modes found (dip test, adjusted: p = {modes.p_adjusted:.2g})"
            )
        else:
            shares = shares_by_boot(modes.modes, modes.samples)
            texts = [
                f"{100 * share:.0f} % (by boot {' '.join(f'{100 * s:.0f}' for s in shares[:, i])})"
                for i, share in enumerate(modes.modes.shares)
            ]
            lines.append(f"  {name}: {modes.modes.k} modes, shares {join(texts)}")
    return lines


def _verdict(
    design: Mapping[str, Any], modes_in: set[int], differ: set[int], compared: bool
) -> str:
    """Returns what follows, given the arms that have modes, and those that scatter more."""
    names = [arm["text"] for arm in design["arms"]]
    quiet = design["quiet"]
    if not compared:
        return "There are too few cycles to compare the arms."
    if len(differ) == 2:
        return "The drivers contradict each other, so nothing is decided."
    if differ:
        (noisy,) = differ
        said = f"The samples scatter more with: {names[noisy]}."
        if quiet is None:
            return said + (
                " The state changes by itself, within a sample." if noisy == 0
                else " That is neither of the predictions."
            )  # fmt: skip
        if noisy == quiet:
            return said + " That is the opposite of the prediction."
        if noisy in modes_in and quiet not in modes_in:
            return said + " That, and the modes, are as predicted."
        if quiet in modes_in:
            return said + " That is as predicted, but modes remain: there is another cause as well."
        return said + " That is as predicted, though separate modes were not found."
    if not modes_in:
        return "No arm has modes, so nothing is decided. They may come with other boots."
    if quiet is None and modes_in == {0, 1}:
        return "Both arms have modes and scatter alike: the process is decisive."
    return (
        "The arms do not differ, and there are modes: the prediction is not confirmed. Another"
        " hypothesis can be tried with --hypothesis."
    )


def explain(db_path: Path | str, cell: str, run: str | None = None) -> str:
    """Returns in words what explains the modes of a cell, and which experiment would decide."""
    explanation = analyse_cell(db_path, cell, run)
    result, chosen = explanation.result, explanation.cell
    lines = [f"{chosen.name}, run {result.run.name} ({_boots(result)})", ""]
    for driver, modes in chosen.modes.items():
        name = result.name_of(driver)
        if modes.dip is None:
            lines.append(f"{name}: too few samples to look for modes.")
        elif not modes.found:
            lines.append(
                f"{name}: no modes were found (dip test, adjusted: p = {modes.p_adjusted:.2g})."
            )
        else:
            shares = shares_by_boot(modes.modes, modes.samples)
            lines.append(
                f"{name}: {modes.modes.k} modes (dip test, adjusted: p = {modes.p_adjusted:.2g})"
            )
            for i, centre in enumerate(modes.modes.centres):
                lines.append(
                    f"  {math.exp(centre):14,.0f} {result.metric.unit}: "
                    f"{100 * modes.modes.shares[i]:3.0f} % of samples; by boot "
                    f"{' '.join(f'{100 * s:.0f}' for s in shares[:, i])} %"
                )
    if not chosen.has_modes:
        lines += ["", "There are no modes to explain."]
        return "\n".join(lines) + "\n"
    lines += _say_ranks(explanation)
    lines += _say_experiment(explanation)
    return "\n".join(lines) + "\n"


def _boots(result: RunResult) -> str:
    return f"{result.boots} boot{'' if result.boots == 1 else 's'}"


def _say_ranks(explanation: Explanation) -> list[str]:
    lines = [
        "",
        "What covariates explain of the mode of a sample, beyond chance",
        "  explained   adjusted p   compared       covariate",
    ]
    shown = [r for r in explanation.ranks if r.p_adjusted <= explanation.result.alpha]
    rest = [r for r in explanation.ranks if r not in shown]
    for rank in shown + rest[: max(0, 5 - len(shown))]:
        lines.append(
            f"  {100 * rank.explained:7.0f} %   {rank.p_adjusted:10.3g}   {rank.kind:13}  "
            f"{rank.name}"
        )
    if len(rest) > max(0, 5 - len(shown)):
        lines.append(
            f"  and {len(rest) - max(0, 5 - len(shown))} that explain no more than chance."
        )
    boots = explanation.result.boots
    if boots < 5:
        lines.append(
            f"  What changes from boot to boot cannot be judged with {_boots(explanation.result)}: "
            "at least five are needed."
        )
    for text, names in (
        ("The same in all samples", explanation.constant),
        ("Absent on this machine", explanation.absent),
        ("Different in nearly each sample, so not usable", explanation.unusable),
    ):
        if names:
            # The numbers of a list are one covariate.
            whole = sorted({re.sub(r"\[\d+\]$", "", name) for name in names})
            lines.append(f"{text}: {join(whole, 12)}.")
    return lines


def _say_experiment(explanation: Explanation) -> list[str]:
    lines = ["", "A rank is no cause. The experiment that would decide:"]
    found = hypotheses(explanation)
    plan = explanation.result.run.plan
    result_path = explanation.result.run.path.parent
    chosen = explanation.cell.name
    if " " in chosen:
        chosen = f"'{chosen}'"
    for index, hypothesis in enumerate(found, 1):
        names = [
            r.name for r in explanation.significant if re.search(hypothesis.covariates, r.name)
        ]
        why = f" (from {join(names, 4)})" if names else " (no covariate points to it)"
        lines += ["", f"{index}. {hypothesis.key}: {hypothesis.text}{why}"]
        for _, text, override in arms(explanation, hypothesis):
            options = " ".join(
                f"--set {section}.{key}={_option(value)}"
                for section, values in override.items()
                for key, value in values.items()
            )
            is_set = "config" in plan and hypothesis.key != "lock" and _is_set(plan, override)
            lines.append(f"   {text}{' (as in this run)' if is_set else ''}: {options}")
        lines.append(f"   If that is right: {hypothesis.predicts}.")
    lines += [
        "",
        f"blkcompare explain {result_path} {chosen} --experiment DIR",
        "plans the first of these, with both arms in one run, in an order by lot.  --hypothesis",
        "NAME takes another one, and --go carries it out.",
    ]
    return lines


def _option(value: Any) -> str:
    """Formats a value for --set, quoted for a shell where it is needed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "'[" + ", ".join(f'"{v}"' for v in value) + "]'"
    return str(value)
