# SPDX-License-Identifier: GPL-2.0
"""Tests of the analysis of whole runs, which are simulated."""

import math

import numpy as np
import pytest

from blkcompare import simulate, stats
from blkcompare.analysis import (
    Verdict,
    analyse,
    analyse_all,
    join,
    plan_power,
    select_run,
    sentences,
)
from blkcompare.db import Database, DatabaseError
from blkcompare.simulate import Scenario

CELLS = simulate.matrix(jobs=(1,), rw=("randread",), depth=(1, 8))  # 4 cells
NAMES = list(CELLS)
HALF = simulate.matrix(jobs=(1,))


def made(tmp_path, scenario=None, name="x.db", **options):
    scenario = scenario or Scenario(cells=4, boots=6, boot_own=0.002)
    simulate.write_run(tmp_path / name, scenario, cells=CELLS, **options)
    return select_run(tmp_path / name)


def test_verdicts(tmp_path):
    modal = Scenario(cells=1, boots=6, mode_gap=0.3, mode_share_a=0.4, mode_share_b=0.6)
    run = made(tmp_path, effects={NAMES[0]: 0.03, NAMES[1]: -0.03}, modal={NAMES[2]: modal}, seed=2)
    result = analyse(run)
    assert [c.verdict for c in result.cells] == [
        Verdict.FASTER,
        Verdict.SLOWER,
        Verdict.MODES,
        Verdict.EQUIVALENT,
    ]
    assert result.cells[0].estimate.mean == pytest.approx(0.03, abs=0.006)
    modes = result.cells[2]
    assert modes.mean is None and modes.estimate is None
    assert {len(m.modes.centres) for m in modes.modes.values() if m.found} == {2}
    assert [w.mean for w in modes.within] == pytest.approx([0, 0], abs=0.01)
    assert not result.void


def test_headline_is_the_t_interval_over_boots(tmp_path):
    run = made(tmp_path)
    cell = analyse(run).cells[0]
    means = []
    for boot in range(1, 7):
        logs = []
        for cycle in run.cycles:
            if (cycle.cell, cycle.boot, cycle.state) == (NAMES[0], boot, "kept"):
                iops = {"A": [], "B": [], "A2": []}
                for sample in cycle.samples:
                    iops[sample.driver].append(math.log(sample.iops))
                logs.append(np.mean(iops["B"]) - np.mean(iops["A"]))
        means.append(np.mean(logs))
    expected = stats.t_interval(means)
    assert cell.estimate.mean == pytest.approx(expected.mean)
    assert cell.estimate.low == pytest.approx(expected.low)


def test_rejected_cycles_do_not_count_but_are_shown(tmp_path):
    run = made(tmp_path, rejected=0.3)
    result = analyse(run)
    assert all(c.kept == 48 for c in result.cells)
    assert sum(c.rejected for c in result.cells) > 20
    clean = [c for c in run.cycles if c.state == "kept"]
    for cycle in run.cycles:
        if cycle.state == "rejected":
            for sample in cycle.samples:
                sample.iops *= 100
    assert analyse(run).cells[0].estimate == result.cells[0].estimate
    assert len(clean) == 192


def test_a_failed_control_voids_the_run(tmp_path):
    cells = simulate.matrix()
    path = tmp_path / "x.db"
    scenario = Scenario(cells=24, boots=6, boot_own=0.002, control_effect=0.02)
    simulate.write_run(path, scenario, cells=cells, effects={next(iter(cells)): 0.05})
    result = analyse(select_run(path))
    assert result.void
    assert {c.verdict for c in result.cells} == {Verdict.VOID}
    said = sentences(result)
    assert "void" in said.found[0]
    assert not any("faster" in text or "equivalent" in text for text in said.found)


def change_latency(run, factor):
    """Multiplies the latencies by what ``factor(cycle, sample, percentile)`` returns."""
    for cycle in run.cycles:
        for sample in cycle.samples:
            for name in ("50", "99"):
                sample.latency[name] *= factor(cycle, sample, name)


def test_latency_is_judged_by_the_same_rules(tmp_path):
    run = made(tmp_path, effects={NAMES[0]: 0.03})
    change_latency(run, lambda cycle, sample, p: 1.03 if (p, sample.driver) == ("99", "B") else 1.0)
    result = analyse_all(run)
    p50, p99 = result.beside
    assert [r.metric.name for r in (result, p50, p99)] == ["iops", "p50", "p99"]
    assert result.cells[0].verdict is p50.cells[0].verdict is Verdict.FASTER
    # The latency of a simulated sample is the inverse of its IOPS.
    assert p50.cells[0].estimate.mean == pytest.approx(-result.cells[0].estimate.mean)
    assert p50.cells[0].estimate.low == pytest.approx(-result.cells[0].estimate.high)
    assert p50.cells[0].p_adjusted == pytest.approx(result.cells[0].p_adjusted)
    assert p99.cells[0].verdict is Verdict.EQUIVALENT
    assert {c.verdict for c in p99.cells[1:]} == {Verdict.SLOWER}
    said = sentences(result)
    found = " ".join(said.found)
    assert "The median latency of rnull is shorter than that of null_blk in 1 cell of 4" in found
    assert (
        "The 99th percentile of the latency of rnull is longer than that of null_blk in 3" in found
    )
    assert "equivalent in the 99th percentile of the latency" in found
    assert "the median latency of rnull differs from that of null_blk by" in found
    assert "A/A control of the median latency shows no fault" in " ".join(said.not_found)
    assert "latency" not in " ".join(said.not_looked_at)


def test_a_control_that_fails_in_latency_voids_that_only(tmp_path):
    path = tmp_path / "x.db"
    simulate.write_run(path, Scenario(cells=12, boots=5, cycles=3, boot_own=0.002), cells=HALF)
    run = select_run(path)
    change_latency(
        run,
        lambda cycle, sample, p: (
            {"A2": 1.03, "B": 1.05}.get(sample.driver, 1) if p == "99" else 1.0
        ),
    )
    result = analyse_all(run)
    p50, p99 = result.beside
    assert (result.void, p50.void, p99.void) == (False, False, True)
    assert {c.verdict for c in p99.cells} == {Verdict.VOID}
    found = " ".join(sentences(result).found)
    assert "The comparison of the 99th percentile of the latency is void" in found
    assert "latency of rnull is longer" not in found and "The run is void" not in found


def test_a_void_run_has_no_verdict_on_latency(tmp_path):
    path = tmp_path / "x.db"
    scenario = Scenario(cells=12, boots=5, cycles=3, boot_own=0.002, control_effect=0.02)
    simulate.write_run(path, scenario, cells=HALF)
    run = select_run(path)
    # The control of the latency itself has no fault.
    change_latency(run, lambda cycle, sample, p: 1.02 if sample.driver == "A2" else 1.0)
    result = analyse_all(run)
    assert result.void and not result.beside[0].control.failed
    assert {c.verdict for other in result.beside for c in other.cells} == {Verdict.VOID}
    assert not any("latency" in text for text in sentences(result).found)


def test_latency_that_was_not_looked_at_is_said(tmp_path):
    run = made(tmp_path, plan={"headline": {"metric": "iops"}})
    for cycle in run.cycles:
        for sample in cycle.samples:
            if cycle.cell == NAMES[1]:
                sample.latency["ios"] = 999 if sample.id % 20 == 0 else 1000
            if cycle.cell == NAMES[2] and sample.driver == "B":
                del sample.latency["50"]
    result = analyse_all(run)
    p50, p99 = result.beside
    missing = [[c.name for c in r.of(Verdict.MISSING)] for r in (result, p50, p99)]
    assert missing == [[], [NAMES[2]], [NAMES[1]]]
    said = " ".join(sentences(result).not_looked_at)
    assert "The 99th percentile of the latency in 1 cell, because it was not recorded, or" in said
    assert f"than 10 I/O of a sample lie beyond it: {NAMES[1]}." in said
    assert "The median latency was not named by the plan" in said


def test_the_plan_can_have_latency_for_its_headline(tmp_path):
    plan = {"headline": {"metric": "p99", "test": "t", "beside": ["iops", "p99"]}}
    run = made(tmp_path, effects={NAMES[0]: -0.03}, plan=plan)
    result = analyse_all(run)
    assert result.metric.name == "p99" and [r.metric.name for r in result.beside] == ["iops"]
    assert result.cells[0].verdict is result.beside[0].cells[0].verdict is Verdict.SLOWER
    assert result.cells[0].estimate.mean == pytest.approx(0.03, abs=0.006)
    assert result.cells[0].bootstrap and not result.beside[0].cells[0].bootstrap
    assert "99th percentile of the latency" in sentences(result).found[0]


def test_too_few_boots_give_no_verdict(tmp_path):
    result = analyse(made(tmp_path, Scenario(cells=4, boots=2, cycles=30)))
    assert {c.verdict for c in result.cells} == {Verdict.TOO_FEW}
    assert all(c.estimate is None and c.mean is not None for c in result.cells)
    said = " ".join(sentences(result).not_looked_at)
    assert "fewer than 3 boots" in said
    assert "A/A control has 2 boots, 3 are needed" in said


def test_what_was_not_looked_at_is_said(tmp_path):
    run = made(
        tmp_path,
        control=False,
        skip=[NAMES[3]],
        complete=False,
        plan={"boots": 9, "not_measured": ["no polled I/O."]},
    )
    result = analyse(run)
    assert result.cells[3].verdict is Verdict.MISSING
    said = " ".join(sentences(result).not_looked_at)
    for text in (
        "there is no A/A control",
        f"without a kept cycle: {NAMES[3]}",
        "The run is not complete",
        "6 of 9 planned boots",
        "no polled I/O.",
        "jobs was 1 in all cells",
        "One machine",
    ):
        assert text in said


def test_undecided_is_not_called_no_difference(tmp_path):
    result = analyse(made(tmp_path, Scenario(cells=4, boots=3, cycles=2, noise=0.05)))
    assert all(c.verdict is Verdict.UNDECIDED for c in result.cells)
    said = " ".join(sentences(result).not_found)
    assert "neither a difference nor equivalence" in said
    assert "not evidence of no difference" in said


def test_small_differences_are_called_small(tmp_path):
    scenario = Scenario(cells=4, boots=8, cycles=20, noise=0.002, boot_own=0.0005)
    result = analyse(made(tmp_path, scenario, effects={NAMES[0]: 0.004}))
    assert result.cells[0].verdict is Verdict.FASTER and result.cells[0].small
    assert any("smaller than the margin" in text for text in sentences(result).found)


def test_outliers_cause_a_warning(tmp_path):
    outliers = Scenario(cells=1, boots=6, outliers=0.04, outlier_size=0.3)
    cells = analyse(made(tmp_path, modal={NAMES[0]: outliers})).cells
    assert cells[0].outliers and any("far from the rest" in w for w in cells[0].warnings)
    assert cells[0].kept == 48
    assert not any("far from the rest" in w for w in cells[1].warnings)


def test_drift_of_one_driver_causes_a_warning(tmp_path):
    run = made(tmp_path, Scenario(cells=4, boots=6, cycles=20, boot_own=0.002))
    rng = np.random.default_rng(1)
    for boot in range(1, 7):
        level = 0.0
        for cycle in run.cycles:
            if cycle.boot == boot and cycle.cell == NAMES[1]:
                level = 0.9 * level + rng.normal(0, 0.02)
                for sample in cycle.samples:
                    sample.iops *= math.exp(level * (sample.driver == "B"))
    cells = analyse(run).cells
    assert any("not independent in time" in w for w in cells[1].warnings)
    assert not any("not independent" in w for w in cells[0].warnings)


def test_linear_drift_cancels(tmp_path):
    still = analyse(made(tmp_path, name="1.db"))
    drift = Scenario(cells=4, boots=6, boot_own=0.002, drift=0.5)
    moving = analyse(made(tmp_path, drift, "2.db"))
    for a, b in zip(still.cells, moving.cells, strict=True):
        assert a.estimate.mean == pytest.approx(b.estimate.mean, abs=1e-9)


def test_the_same_run_gives_the_same_results(tmp_path):
    run = made(tmp_path)
    first, second = analyse(run), analyse(run)
    assert [c.bootstrap for c in first.cells] == [c.bootstrap for c in second.cells]
    assert first.control == second.control


def test_samples_without_variance(tmp_path):
    run = made(tmp_path)
    for cycle in run.cycles:
        for sample in cycle.samples:
            sample.iops = 1000.0
    result = analyse(run)
    assert {c.verdict for c in result.cells} == {Verdict.EQUIVALENT}
    assert result.cells[0].estimate.mean == 0


def test_bad_plans_are_refused(tmp_path):
    run = made(tmp_path)
    for change, message in (
        ({"drivers": {}}, "does not name drivers A and B"),
        ({"headline": {"metric": "speed"}}, "metric 'speed' is not known"),
        ({"headline": {"test": "u"}}, "headline test 'u'"),
    ):
        plan, run.plan = run.plan, {**run.plan, **change}
        with pytest.raises(DatabaseError, match=message):
            analyse(run)
        run.plan = plan
    with pytest.raises(ValueError, match="confidence"):
        analyse(run, confidence=95)


def test_a_run_without_cycles_is_reported(tmp_path):
    path = tmp_path / "x.db"
    with Database(path, create=True) as database:
        database.start_run(
            {"drivers": {"A": {"name": "a"}, "B": {"name": "b"}}},
            name="empty",
            machine={"id": "m", "name": "m"},
            versions={},
            cells=CELLS,
        )
    result = analyse(select_run(path))
    assert {c.verdict for c in result.cells} == {Verdict.MISSING}
    assert sentences(result).found == []


def test_select_run(tmp_path):
    path = tmp_path / "x.db"
    first = simulate.write_run(path, Scenario(cells=4, boots=1, cycles=1), cells=CELLS, name="one")
    simulate.write_run(
        path, Scenario(cells=4, boots=1, cycles=1), cells=CELLS, name="two", started=1.8e9
    )
    assert select_run(path).name == "two"
    assert select_run(path, "one").id == select_run(path, first[:8]).id == first
    with pytest.raises(DatabaseError, match="there is no run three"):
        select_run(path, "three")


def test_power_of_a_pilot(tmp_path):
    made(tmp_path)
    text = plan_power(tmp_path / "x.db")
    assert "median cell" in text and "cautious" in text
    made(tmp_path, Scenario(cells=4, boots=1, cycles=10), "one.db")
    with pytest.raises(stats.TooFewBoots, match="the pilot has one boot"):
        plan_power(tmp_path / "one.db")


def test_power_keeps_its_promise(tmp_path, full):
    """A run of the size that the pilot asks for finds the difference nine times in ten."""
    pilot = made(tmp_path, Scenario(cells=4, boots=40, cycles=10, boot_own=0.006))
    differences = [list(c.differences.values()) for c in analyse(pilot, draws=100).cells]
    components = [stats.variance_components(d) for d in differences]
    mean = stats.Pilot(
        float(np.mean([c.within for c in components])),
        float(np.mean([c.between for c in components])),
        40,
        10,
    )
    (need,) = stats.power(mean, 0.01, 0.01, cycles=[5])
    n = 4000 if full else 800
    rng = np.random.default_rng(2)
    x, driver = simulate.draw(Scenario(cells=n, boots=need.boots_t, cycles=5, effect=0.01), rng)
    found = [stats.t_interval(d.mean(axis=1)).p <= 0.05 for d in simulate.differences(x, driver)]
    assert 0.87 <= np.mean(found) <= 0.98
    x, driver = simulate.draw(Scenario(cells=n, boots=need.boots_tost, cycles=5), rng)
    same = [stats.tost(d.mean(axis=1), 0.01) <= 0.05 for d in simulate.differences(x, driver)]
    assert 0.87 <= np.mean(same) <= 0.98


def test_join():
    assert join([]) == ""
    assert join(["a"]) == "a"
    assert join("abc") == "a, b and c"
    assert join("abcdefghij", 4) == "a, b, c and 7 more"
