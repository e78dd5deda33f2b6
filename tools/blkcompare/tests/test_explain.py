# SPDX-License-Identifier: GPL-2.0
"""Tests of the ranking of covariates."""

import math

import numpy as np
import pytest

from blkcompare import explain, simulate
from blkcompare.analysis import METRICS, select_run
from blkcompare.config import Config
from blkcompare.db import Database, DatabaseError

CELLS = simulate.matrix(jobs=(2,), rw=("randread",), bs=("4k",), depth=(1, 8))
MODAL, PLAIN = list(CELLS)


def write(path, covariates, *, boots=6, cycles=10, lasts=False, seed=1, plan=None):
    """Writes a run whose first cell has modes; ``covariates(mode, boot, rng)`` makes a sample's."""
    rng = np.random.default_rng(seed)
    drivers = {"drivers": {"A": {"name": "a"}, "B": {"name": "b"}}}
    with Database(path, create=True, durable=False) as database:
        run = database.start_run(
            {**drivers, **(plan or {})},
            name="run",
            machine={"id": "m", "name": "m"},
            versions={},
            cells=CELLS,
        )
        now = 0.0
        for number in range(boots):
            boot = database.start_boot(
                run, boot_id=str(number), kernel="", cmdline="", facts={}, started=now
            )
            of_boot = {d: rng.random() < 0.5 for d in "ABC"}
            for cycle in range(cycles):
                for cell in CELLS:
                    id_ = database.start_cycle(run, boot, cell, cycle + 1, "ABCCBA", started=now)
                    for position, letter in enumerate("ABCCBA", 1):
                        slow = of_boot[letter] if lasts else rng.random() < 0.5
                        slow = slow and cell == MODAL
                        now += 1
                        database.add_sample(
                            id_,
                            position,
                            iops=1e5 * math.exp(rng.normal(0, 0.01) - 0.3 * slow),
                            bandwidth=1.0,
                            latency={},
                            started=now,
                            ended=now + 1,
                            covariates=covariates(slow, number, rng),
                        )
                    database.end_cycle(id_, "kept", ended=now)
    return path


def some(slow, boot, rng):
    colour = 1.5 + rng.normal(0, 0.1) if slow else 1.0 + rng.normal(0, 0.1)
    return {
        "buffer_colour_imbalance": colour,
        "temperature": 50 + rng.random(),
        "buffer_colours": f"{rng.integers(9)},{rng.integers(9) + 5 * slow},{rng.integers(9)}",
        "module.a.address": f"0xffff{boot:x}000",
        "free_kib": 1000 * boot + 7,
        "cstate": None,
        "microcode": "0x1",
        "argv": f"fio --seed {rng.random()}",
    }


def test_the_covariate_that_decides_comes_first(tmp_path):
    path = write(tmp_path / "x.db", some)
    found = explain.analyse_cell(path, MODAL)
    assert found.ranks[0].name == "buffer_colour_imbalance"
    assert found.ranks[0].explained > 0.7
    names = [r.name for r in found.significant]
    assert "buffer_colours[1]" in names
    assert not {"temperature", "buffer_colours[0]", "module.a.address", "free_kib"} & set(names)
    assert found.constant == ["microcode"]
    assert found.absent == ["cstate"]
    assert found.unusable == ["argv"]
    text = explain.explain(path, MODAL)
    assert "2 modes" in text
    assert text.index("1. buffers: The physical pages") < text.index("load.huge_pages=true")
    assert "Absent on this machine: cstate." in text


def test_an_address_that_differs_in_each_boot_explains_nothing(tmp_path):
    """Modes that last for a boot: any value that is unique in a boot separates them."""
    path = write(tmp_path / "x.db", some, boots=10, lasts=True)
    found = explain.analyse_cell(path, MODAL)
    by_name = {r.name: r for r in found.ranks}
    assert by_name["(the boot itself)"].explained > 0.8
    assert by_name["module.a.address"].explained < 0.05
    assert by_name["module.a.address"].p_adjusted > 0.05
    assert by_name["module.a.address"].kind == "between boots"


def test_what_goes_with_the_mode_of_a_boot_is_found(tmp_path):
    """Ten boots, with a covariate that has the value of the boot's mode."""
    modes = {}

    def of_boot(slow, boot, rng):
        modes.setdefault(boot, []).append(slow)
        return {"buddyinfo_before": f"{10 + boot % 2},{rng.integers(5)}"}

    path = tmp_path / "x.db"
    write(path, of_boot, boots=12)
    with Database(path) as database:
        # The first driver is slow in every second boot.
        database._db.execute(
            "UPDATE sample SET iops = 1e5 * (1 - 0.3 * (SELECT boot.number % 2 FROM boot, cycle"
            " WHERE cycle.id = sample.cycle AND boot.id = cycle.boot)) * (1 + 0.0001 * (id % 97))"
        )
    found = explain.analyse_cell(path, MODAL)
    rank = next(r for r in found.ranks if r.name == "buddyinfo_before[0]")
    assert rank.kind == "between boots" and rank.explained > 0.5
    assert rank.p_adjusted <= 0.05
    assert explain.hypotheses(found)[0].key == "placement"


def test_ranks_keep_their_level(tmp_path, full):
    """A covariate that has nothing to do with the mode is found at the level of the test."""
    rng = np.random.default_rng(1)
    n = 400 if full else 60
    small = within = between = 0
    for _ in range(n):
        labels = rng.integers(0, 2, 120)
        boots = np.repeat(np.arange(6), 20)
        strata = np.tile([0, 1], 60)
        groups = rng.integers(0, 3, 120)
        kind, explained, p = explain._score(labels, groups, strata, boots, 99, rng)
        assert kind == "within boots"
        within += p <= 0.05
        small += explained < 0.05
        of_boot = rng.integers(0, 3, 6)[boots]
        labels = (rng.random(6) < 0.5).astype(int)[boots]
        between += explain._score(labels, of_boot, strata, boots, 99, rng)[2] <= 0.05
    limit = 0.05 + 4 * math.sqrt(0.05 * 0.95 / n)
    assert within / n <= limit and between / n <= limit
    assert small / n >= 0.95


def test_information_is_entropy():
    labels = np.array([0, 0, 1, 1])
    zero = np.zeros(4, int)
    assert explain.information(labels, labels, zero) == pytest.approx(1)
    assert explain.information(labels, zero, zero) == pytest.approx(0)
    assert explain.information(labels, np.array([0, 1, 0, 1]), zero) == pytest.approx(0)
    # What the strata explain is not counted for the groups.
    assert explain.information(labels, zero, labels) == 0


def test_values_are_grouped():
    assert explain._grouped(["1", "2", None, "1"]).tolist() == [1, 2, 0, 1]
    assert set(explain._grouped([str(i) for i in range(40)]).tolist()) == {0, 1, 2, 3}
    assert explain._grouped([f"text {i}" for i in range(40)]) is None
    assert explain._grouped(["a", "b"] * 20).max() == 1


def test_a_cell_without_modes_has_nothing_to_explain(tmp_path):
    path = write(tmp_path / "x.db", some)
    assert "no modes to explain" in explain.explain(path, PLAIN)
    assert explain.experiment(path, PLAIN) is None


def test_the_experiment_has_both_arms(tmp_path):
    plan = {"config": {"load": {"huge_pages": True}}, "cycles": 3, "boots": 5}
    path = write(tmp_path / "x.db", some, plan=plan)
    design = explain.experiment(path, MODAL)
    assert design["hypothesis"] == "buffers" and design["over"] == "cycles"
    assert [arm["set"] for arm in design["arms"]] == [
        {"matrix": {"cells": [MODAL]}, "load": {"huge_pages": True}},
        {"matrix": {"cells": [MODAL]}, "load": {"huge_pages": False}},
    ]
    assert design["set"] == {"cycles": 6, "boots": 5}
    text = explain.explain(path, MODAL)
    assert "buffers in huge pages (as in this run)" in text
    assert f"blkcompare explain {tmp_path} '{MODAL}' --experiment DIR" in text
    # What is a matter of the machine needs as many boots for each arm.
    other = explain.experiment(path, MODAL, key="clock")
    assert other["over"] == "boots" and other["set"]["boots"] == 8
    with pytest.raises(ValueError, match="there is no hypothesis 'moon'; there are buffers"):
        explain.experiment(path, MODAL, key="moon")


def test_all_arms_are_keys_of_the_configuration():
    for hypothesis in explain.HYPOTHESES:
        assert hypothesis.over in ("cycles", "boots")
        for _, _, override in hypothesis.arms:
            Config().apply(override, "here")
            # What cycles can have of their own is a matter of the load only.
            assert hypothesis.over == "boots" or set(override) == {"load"}


def test_several_jobs_are_compared_with_one(tmp_path):
    path = write(tmp_path / "x.db", lambda *_: {})
    found = explain.analyse_cell(path, MODAL)
    lock = explain.hypotheses(found)[0]
    assert lock.key == "lock"
    choices = [override["matrix"]["cells"] for *_, override in explain.arms(found, lock)]
    assert choices == [[MODAL.replace("jobs 2", "jobs 1")], [MODAL]]
    design = explain.experiment(path, MODAL)
    assert [arm["set"] for arm in design["arms"]] == [{"matrix": {"cells": c}} for c in choices]


def test_the_names_of_cells_of_plans_are_understood():
    class Cell:
        name, axes = "randread-4k-d8-j12@small", {"jobs": 12}

    class Explanation:
        cell = Cell

    lock = next(h for h in explain.HYPOTHESES if h.key == "lock")
    (*_, one), (*_, many) = explain.arms(Explanation, lock)
    assert one == {"matrix": {"cells": ["randread-4k-d8-j1"]}}
    assert many == {"matrix": {"cells": ["randread-4k-d8-j12"]}}


def test_an_unknown_cell_is_refused(tmp_path):
    path = write(tmp_path / "x.db", some, boots=1, cycles=1)
    with pytest.raises(DatabaseError, match="no cell 'depth'; there are randread 4k depth 1"):
        explain.explain(path, "depth")


# The outcome of experiments.


def experiment(path, gaps, *, over="cycles", quiet=0, boots=6, cycles=8, lasts=False, seed=1):
    """Writes the run of an experiment: arm i has modes that are ``gaps[i]`` apart."""
    rng = np.random.default_rng(seed)
    arms = [{"name": n, "text": f"arm {n}", "set": {}} for n in ("one", "two")]
    by_boot = rng.permutation([b % 2 for b in range(boots)])
    plan = {
        "drivers": {"A": {"name": "a"}, "B": {"name": "b"}},
        "cells": [{"name": f"c@{arm['name']}", "arm": i} for i, arm in enumerate(arms)],
        "arms": {
            "hypothesis": "h", "text": "Is it?", "predicts": "it is", "quiet": quiet, "over": over,
            "arms": arms,
        },
    }  # fmt: skip
    with Database(path, create=True, durable=False) as database:
        run = database.start_run(
            plan,
            name="x",
            machine={"id": "m", "name": "m"},
            versions={},
            cells={cell["name"]: {"arm": arms[cell["arm"]]["name"]} for cell in plan["cells"]},
        )
        now = 0.0
        for number in range(boots):
            boot = database.start_boot(
                run, boot_id=str(number), kernel="", cmdline="", facts={}, started=now
            )
            for cycle in range(cycles):
                for arm, cell in enumerate(plan["cells"]):
                    if over == "boots" and by_boot[number] != arm:
                        continue
                    id_ = database.start_cycle(
                        run, boot, cell["name"], cycle + 1, "ABBA", started=now
                    )
                    slow = rng.random() < 0.5
                    for position in range(1, 5):
                        if not lasts:
                            slow = rng.random() < 0.5
                        now += 1
                        value = rng.normal(0.5 * arm, 0.01) - gaps[arm] * slow
                        database.add_sample(
                            id_, position, iops=1e5 * math.exp(value), bandwidth=1.0, latency={},
                            started=now, ended=now + 1,
                        )  # fmt: skip
                    database.end_cycle(id_, "kept", ended=now)
        database.end_run(run, "complete")
    return path


@pytest.mark.parametrize("over", ["cycles", "boots"])
@pytest.mark.parametrize(
    ("gaps", "quiet", "words"),
    [
        ((0, 0.3), 0, "scatter more with: arm two. That, and the modes, are as predicted."),
        ((0.3, 0), 0, "scatter more with: arm one. That is the opposite of the prediction."),
        ((0.3, 0.3), 0, "The arms do not differ, and there are modes: the prediction is not"),
        ((0.3, 0.3), None, "Both arms have modes and scatter alike: the process is decisive."),
        ((0.3, 0), None, "scatter more with: arm one. The state changes by itself"),
        ((0, 0), 0, "No arm has modes, so nothing is decided."),
    ],
)
def test_outcome(tmp_path, over, gaps, quiet, words):
    path = experiment(tmp_path / "x.db", gaps, over=over, quiet=quiet, boots=8)
    text = explain.outcome(path, draws=199)
    assert words in text
    assert f"The arms came by lot over the {over}." in text
    # A difference of the level, which the arms have here, is no mode.
    assert text.count("2 modes, shares") == 2 * sum(gap > 0 for gap in gaps)


def test_the_test_of_an_experiment_keeps_its_level(tmp_path, full):
    """Without a difference of the arms, the permutation test rejects at its level."""
    n = 200 if full else 25
    rng = np.random.default_rng(1)
    for over in ("cycles", "boots"):
        found = 0
        for seed in range(n):
            # Modes that last for a cycle: its samples are not independent.
            path = tmp_path / f"{over}-{seed}.db"
            experiment(path, (0.2, 0.2), over=over, boots=6, cycles=4, lasts=True, seed=seed)
            compared = explain.compare_arms(select_run(path), METRICS["iops"], "A", 99, rng)
            found += compared.p <= 0.05
        # With 6 boots 2 of 20 ways are the least, so nothing can be found.
        assert found / n <= (0.05 + 4 * math.sqrt(0.05 * 0.95 / n) if over == "cycles" else 0)


def test_an_experiment_that_has_hardly_begun(tmp_path):
    path = experiment(tmp_path / "x.db", (0, 0.3), over="boots", boots=1, cycles=2)
    text = explain.outcome(path)
    assert "There are too few cycles to compare the arms." in text
    assert "b: not measured" in text


def test_an_ordinary_run_is_no_experiment(tmp_path):
    path = write(tmp_path / "x.db", some, boots=1, cycles=1)
    with pytest.raises(DatabaseError, match="is no experiment"):
        explain.outcome(path)
