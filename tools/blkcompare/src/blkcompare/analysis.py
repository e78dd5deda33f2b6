# SPDX-License-Identifier: GPL-2.0
"""From a run of the database to the results of its cells, and to sentences about them.

Numbers of one cell are never dropped because of their value: outliers and drift cause warnings,
modes replace the mean by the differences within modes, and a failed control voids the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import modes as md
from . import stats
from .db import Database, DatabaseError, Run, Sample

Array = NDArray[np.float64]

#: A cycle further than this from the median of its boot, in robust standard deviations, is called
#: an outlier.  It is counted and shown, and stays in all results.
OUTLIER = 6.0

#: Axes whose numbers are bytes.
SIZE_AXES = ("bs", "block_size", "size")


#: A percentile is not used if fewer I/O of a sample than this lie beyond it.
LEAST_BEYOND = 10

#: What is compared beside the headline if the plan does not say it.
BESIDE = ("p50", "p99")


@dataclass(frozen=True)
class Metric:
    """A quantity of a sample that is compared."""

    name: str  # in the plan
    noun: str  # in sentences
    unit: str
    better: int = 1  # 1: more is better, -1: less is
    percentile: str = ""  # of the latency

    def value(self, sample: Sample) -> float | None:
        """Returns the quantity, or None if the sample does not have it."""
        if not self.percentile:
            return sample.iops if self.name == "iops" else sample.bandwidth
        value, ios = sample.latency.get(self.percentile), sample.latency.get("ios")
        if value is None or value <= 0:
            return None
        if ios is not None and ios * (1 - float(self.percentile) / 100) < LEAST_BEYOND:
            return None
        return value

    @property
    def of(self) -> str:
        """In sentences that are about the I/O per second if they do not say anything."""
        return f" of the {self.noun}" if self.percentile else ""

    @property
    def title(self) -> str:
        return self.noun[0].upper() + self.noun[1:]


METRICS = {
    metric.name: metric
    for metric in (
        Metric("iops", "I/O per second", "IOPS"),
        Metric("bandwidth", "bandwidth", "bytes per second"),
        Metric("p50", "median latency", "ns", -1, "50"),
        Metric("p99", "99th percentile of the latency", "ns", -1, "99"),
        Metric("p99.9", "99.9th percentile of the latency", "ns", -1, "99.9"),
    )
}


def headline_metric(plan: Mapping[str, Any]) -> Metric:
    """Returns what a plan compares."""
    name = plan.get("headline", {}).get("metric", "iops")
    if name not in METRICS:
        raise DatabaseError(
            f"the plan's headline metric {name!r} is not known; there are {', '.join(METRICS)}"
        )
    return METRICS[name]


class Verdict(Enum):
    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    MODES = "modes"
    TOO_FEW = "too few boots"
    MISSING = "not measured"
    VOID = "void"


@dataclass
class DriverModes:
    """What the samples of one driver in one cell look like."""

    driver: str
    boots: list[int]
    samples: list[Array]  # logarithms, for each boot in order of time
    dip: md.DipResult | None = None
    p_adjusted: float = 1.0
    modes: md.Modes | None = None  # those of the mixture, if it was fitted

    @property
    def found(self) -> bool:
        """Whether the dip test rejects one mode, and the mixture shows which there are."""
        return self.modes is not None and self.modes.k > 1 and self.significant

    significant: bool = False


@dataclass
class CellResult:
    name: str
    axes: dict[str, Any]
    verdict: Verdict = Verdict.MISSING
    #: log(B/A), and log(A2/A), of the kept cycles of each boot, in order of time.
    differences: dict[int, Array] = field(default_factory=dict)
    control_differences: dict[int, Array] = field(default_factory=dict)
    mean: float | None = None  # over boots; None where there are modes
    estimate: stats.Estimate | None = None
    p_adjusted: float | None = None
    tost: float | None = None
    tost_adjusted: float | None = None
    hodges_lehmann: stats.HodgesLehmann | None = None
    bootstrap: tuple[float, float] | None = None
    detectable: float | None = None
    control: stats.Estimate | None = None
    modes: dict[str, DriverModes] = field(default_factory=dict)
    within: list[md.Within] = field(default_factory=list)
    runs: tuple[float, float] = (0.0, 1.0)
    lag1: tuple[float, float] = (0.0, 1.0)
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    iops: dict[str, float] = field(default_factory=dict)
    #: Medians over samples of what is compared.
    level: dict[str, float] = field(default_factory=dict)
    lacking: bool = False  # a sample does not have what is compared
    kept: int = 0
    rejected: int = 0
    failed: int = 0
    outliers: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def has_modes(self) -> bool:
        return any(m.found for m in self.modes.values())

    @property
    def small(self) -> bool:
        """Whether a difference was found, and it is within the margin as well."""
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER) and self.equivalent

    equivalent: bool = False


@dataclass
class RunResult:
    run: Run
    cells: list[CellResult]
    margin: float
    alpha: float
    confidence: float
    planned_cycles: int | None
    planned_boots: int | None
    control: stats.Control | None
    control_reason: str | None  # why the control cannot be judged
    control_cells: int = 0  # cells with samples of the control
    overall: stats.Estimate | None = None
    overall_cells: int = 0
    metric: Metric = METRICS["iops"]
    #: What is compared beside the headline, by the same rules.
    beside: list[RunResult] = field(default_factory=list)
    headline_void: bool = False

    @property
    def void(self) -> bool:
        """Whether the control failed: that of the headline voids what is beside it as well."""
        return self.headline_void or self.control is not None and self.control.failed

    @property
    def boots(self) -> int:
        return len({b for cell in self.cells for b in cell.differences})

    def name_of(self, driver: str) -> str:
        """Returns the name of driver A, B, or A2 in the plan."""
        drivers = self.run.plan.get("drivers", {})
        if driver == "A2":
            return f"{self.name_of('A')} (control)"
        name = drivers.get(driver, {}).get("name") or driver
        other = drivers.get("AB".replace(driver, ""), {}).get("name")
        return f"{name} ({driver})" if name == other else name

    def of(self, *verdicts: Verdict) -> list[CellResult]:
        return [cell for cell in self.cells if cell.verdict in verdicts]

    @property
    def measured(self) -> list[CellResult]:
        return [cell for cell in self.cells if cell.verdict is not Verdict.MISSING]


def analyse(run: Run, *, confidence: float = 0.95, seed: int = 1, draws: int = 10_000) -> RunResult:
    """Computes the results of a run.  The same run and seed give the same results."""
    return _analyse(run, headline_metric(run.plan), confidence, seed, draws)


def analyse_all(
    run: Run, *, confidence: float = 0.95, seed: int = 1, draws: int = 10_000
) -> RunResult:
    """Computes the results of a run, and of what the plan compares beside the headline."""
    result = analyse(run, confidence=confidence, seed=seed, draws=draws)
    for name in run.plan.get("headline", {}).get("beside", BESIDE):
        if name not in METRICS:
            raise DatabaseError(f"the plan compares {name!r}, which is not known")
        if METRICS[name] not in (result.metric, *(other.metric for other in result.beside)):
            # Without the bootstrap, which is a check of the headline.
            other = _analyse(run, METRICS[name], confidence, seed, 0, result.void)
            result.beside.append(other)
    return result


def _analyse(
    run: Run, metric: Metric, confidence: float, seed: int, draws: int, void: bool = False
) -> RunResult:
    if not 0.5 <= confidence < 1:
        raise ValueError("the confidence has to be between 0.5 and 1")
    rng = np.random.default_rng(seed)
    plan = run.plan
    if not isinstance(plan.get("drivers"), dict) or not {"A", "B"} <= set(plan["drivers"]):
        raise DatabaseError(f"{run.path}: the plan of run {run.id} does not name drivers A and B")
    headline = plan.get("headline", {})
    if headline.get("test", "t") != "t":
        raise DatabaseError(f"the plan's headline test {headline['test']!r} is not known")
    margin, alpha = float(plan.get("margin", 0.01)), float(plan.get("alpha", 0.05))
    cells = [_cell(run, name, metric) for name in run.cells]
    result = RunResult(
        run,
        cells,
        margin,
        alpha,
        confidence,
        plan.get("cycles"),
        plan.get("boots"),
        None,
        None,
        metric=metric,
        headline_void=void,
    )
    _find_modes(result, rng)
    for cell in cells:
        _estimate(cell, result, rng, draws)
    _adjust(result)
    _judge_control(result, rng)
    _overall(result)
    for cell in cells:
        _verdict(cell, result)
    _warn(result)
    return result


def _cell(run: Run, name: str, metric: Metric) -> CellResult:
    cell = CellResult(name, run.cells[name])
    values: dict[str, dict[int, list[float]]] = {"A": {}, "B": {}, "A2": {}}
    latency: dict[str, list[dict[str, float]]] = {"A": [], "B": [], "A2": []}
    iops: dict[str, list[float]] = {"A": [], "B": [], "A2": []}
    differences: dict[int, list[float]] = {}
    control: dict[int, list[float]] = {}
    for cycle in run.cycles:
        if cycle.cell != name:
            continue
        cell.kept += cycle.state == "kept"
        cell.rejected += cycle.state == "rejected"
        cell.failed += cycle.state == "failed"
        if cycle.state != "kept":
            continue
        legs: dict[str, list[float]] = {"A": [], "B": [], "A2": []}
        for sample in cycle.samples:
            latency[sample.driver].append(sample.latency)
            iops[sample.driver].append(sample.iops)
            value = metric.value(sample)
            if value is None:
                cell.lacking = True
                continue
            legs[sample.driver].append(value)
            values[sample.driver].setdefault(cycle.boot, []).append(math.log(value))
        if legs["A"] and legs["B"]:
            differences.setdefault(cycle.boot, []).append(
                stats.cycle_difference(legs["A"], legs["B"])
            )
        if legs["A"] and legs["A2"]:
            control.setdefault(cycle.boot, []).append(stats.cycle_difference(legs["A"], legs["A2"]))
    for driver, found in latency.items():
        if found:
            cell.latency[driver] = _percentiles(found)
            cell.iops[driver] = float(np.median(iops[driver]))
    # To leave out single samples would be a choice by their values.
    if cell.lacking:
        return cell
    cell.differences = {b: np.array(d) for b, d in sorted(differences.items())}
    cell.control_differences = {b: np.array(d) for b, d in sorted(control.items())}
    for driver, boots in values.items():
        if boots:
            order = sorted(boots)
            cell.modes[driver] = DriverModes(driver, order, [np.array(boots[b]) for b in order])
            cell.level[driver] = float(
                np.exp(np.median(np.concatenate(cell.modes[driver].samples)))
            )
    return cell


def _percentiles(samples: Sequence[dict[str, float]]) -> dict[str, float]:
    """Returns the median over samples of each percentile, in ascending order, then the mean."""
    names = {name for sample in samples for name in sample}
    numeric = sorted((n for n in names if _is_number(n)), key=float)
    result = {}
    for name in [*numeric, *(n for n in ("mean",) if n in names)]:
        found = [s[name] for s in samples if s.get(name) is not None]
        result[name] = float(np.median(found))
    return result


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _find_modes(result: RunResult, rng: np.random.Generator) -> None:
    tested = []
    for cell in result.cells:
        for modes in cell.modes.values():
            if sum(a.size for a in modes.samples) >= 8:
                modes.dip = md.dip_test_boots(modes.samples, rng=rng)
                tested.append(modes)
    adjusted = stats.benjamini_hochberg([modes.dip.p for modes in tested])
    for modes, p in zip(tested, adjusted, strict=True):
        modes.p_adjusted = float(p)
        modes.significant = p <= result.alpha
        if modes.dip.p < 0.2:
            modes.modes = md.find_modes(np.concatenate(modes.samples))
            if modes.significant:
                modes.modes = md.confirm_modes(modes.modes, modes.samples, result.alpha, rng)
    for cell in result.cells:
        a, b = cell.modes.get("A"), cell.modes.get("B")
        if a and b and (a.found or b.found):
            for modes in (a, b):
                if not modes.found:
                    modes.modes = _one_mode(np.concatenate(modes.samples))
            common = sorted(set(a.boots) & set(b.boots))
            cell.within = md.difference_within(
                a.modes,
                b.modes,
                [a.samples[a.boots.index(boot)] for boot in common],
                [b.samples[b.boots.index(boot)] for boot in common],
            )


def _one_mode(x: Array) -> md.Modes:
    spread = float(x.std())
    if spread == 0:
        mixture = md.Mixture(np.ones(1), x[:1], np.array([1e-9]), True, 0.0, x.size)
    else:
        mixture = md.fit_mixture(x, 1, True)
    return md.Modes(np.array([x.mean()]), np.zeros(0), np.ones(1), mixture)


def _estimate(cell: CellResult, result: RunResult, rng: np.random.Generator, draws: int) -> None:
    boots = list(cell.differences.values())
    control = list(cell.control_differences.values())
    if len(control) >= stats.MIN_BOOTS:
        cell.control = stats.t_interval(stats.boot_means(control), result.confidence)
    cell.runs = md.runs_test(boots)
    cell.lag1 = md.lag1(boots, rng=rng)
    cell.outliers = _outliers(boots)
    # A mean over modes says nothing.
    if not boots or cell.has_modes:
        return
    means = stats.boot_means(boots)
    cell.mean = float(means.mean())
    if len(boots) < stats.MIN_BOOTS:
        return
    cell.estimate = stats.t_interval(means, result.confidence)
    cell.tost = stats.tost(means, result.margin)
    cell.hodges_lehmann = stats.hodges_lehmann(means, result.confidence)
    if draws:
        cell.bootstrap = stats.hierarchical_bootstrap([boots], result.confidence, draws, rng)
    cell.detectable = stats.detectable(cell.estimate.sd, len(boots), result.alpha)


def _outliers(boots: Sequence[Array]) -> int:
    residuals = [b - np.median(b) for b in boots if b.size >= 3]
    if not residuals:
        return 0
    x = np.concatenate(residuals)
    scale = 1.4826 * float(np.median(np.abs(x)))
    return int((np.abs(x) > OUTLIER * scale).sum()) if scale else 0


def _adjust(result: RunResult) -> None:
    tested = [cell for cell in result.cells if cell.estimate]
    different = stats.benjamini_hochberg([cell.estimate.p for cell in tested])
    same = stats.benjamini_hochberg([cell.tost for cell in tested])
    for cell, p, q in zip(tested, different, same, strict=True):
        cell.p_adjusted, cell.tost_adjusted = float(p), float(q)


def _judge_control(result: RunResult, rng: np.random.Generator) -> None:
    cells = [cell for cell in result.cells if cell.control_differences]
    result.control_cells = len(cells)
    if not cells:
        result.control_reason = "there is no A/A control in this run"
        return
    boots = sorted({b for cell in cells for b in cell.control_differences})
    # The rule needs a number for each cell and boot, so a cell that lacks a boot is left out.
    whole = [cell for cell in cells if len(cell.control_differences) == len(boots)]
    if len(boots) < stats.MIN_BOOTS:
        result.control_reason = f"the A/A control has {_count(len(boots), 'boot')}, 3 are needed"
    elif not whole:
        result.control_reason = "no cell has the A/A control in each boot"
    else:
        table = [[cell.control_differences[b].mean() for b in boots] for cell in whole]
        result.control = stats.control_rule(table, result.alpha, rng=rng)


def _overall(result: RunResult) -> None:
    """The mean over cells, for trends: of cells that have a mean and all boots."""
    cells = [cell for cell in result.cells if cell.mean is not None]
    boots = sorted({b for cell in cells for b in cell.differences})
    cells = [cell for cell in cells if len(cell.differences) == len(boots)]
    result.overall_cells = len(cells)
    if cells and len(boots) >= stats.MIN_BOOTS:
        means = [np.mean([cell.differences[b].mean() for cell in cells]) for b in boots]
        result.overall = stats.t_interval(means, result.confidence)


def _verdict(cell: CellResult, result: RunResult) -> None:
    if not cell.differences:
        cell.verdict = Verdict.MISSING
    elif cell.has_modes:
        cell.verdict = Verdict.MODES
    elif cell.estimate is None:
        cell.verdict = Verdict.TOO_FEW
    elif result.void:
        cell.verdict = Verdict.VOID
    else:
        cell.equivalent = cell.tost_adjusted <= result.alpha
        if cell.p_adjusted <= result.alpha:
            faster = cell.estimate.mean * result.metric.better > 0
            cell.verdict = Verdict.FASTER if faster else Verdict.SLOWER
        else:
            cell.verdict = Verdict.EQUIVALENT if cell.equivalent else Verdict.UNDECIDED


def _warn(result: RunResult) -> None:
    measured = result.measured
    runs = stats.benjamini_hochberg([cell.runs[1] for cell in measured])
    lag1 = stats.benjamini_hochberg([cell.lag1[1] for cell in measured])
    for cell, p_runs, p_lag1 in zip(measured, runs, lag1, strict=True):
        _warn_cell(cell, result, float(p_runs), float(p_lag1))


def _warn_cell(cell: CellResult, result: RunResult, p_runs: float, p_lag1: float) -> None:
    warn = cell.warnings.append
    for modes in cell.modes.values():
        name = result.name_of(modes.driver)
        if modes.dip is None:
            count = sum(a.size for a in modes.samples)
            warn(f"{name}: {_count(count, 'sample')} are too few to look for modes.")
        elif modes.significant and not modes.found:
            warn(
                f"{name}: the dip test rejects one mode (p = {modes.p_adjusted:.2g}), but no "
                "mixture of normals shows separate ones. The mean may be misleading."
            )
        elif modes.modes is not None and modes.modes.k > 1 and not modes.found:
            warn(
                f"{name}: the samples may have {modes.modes.k} modes, but the dip test does not "
                f"confirm it (p = {modes.p_adjusted:.2g})."
            )
    if (
        "A2" in cell.modes
        and cell.modes["A2"].found
        and not any(cell.modes[d].found for d in "AB" if d in cell.modes)
    ):
        warn("Only the control has modes; the mean of the drivers is left out as well.")
    if cell.has_modes and not cell.within:
        warn("The modes of the drivers do not correspond, so there is no difference within a mode.")
    if cell.outliers:
        warn(
            f"{_count(cell.outliers, 'cycle')} of {cell.kept} lie far from the rest of the boot. "
            "They are kept; outliers make the t-interval wide, and its level inexact."
        )
    if min(p_runs, p_lag1) <= result.alpha:
        warn(
            "Cycles of a boot are not independent in time "
            f"(lag-1 autocorrelation {cell.lag1[0]:+.2f}): the machine drifts, or changes its "
            "state. The t-interval over boots allows for that, the bootstrap over cycles does not."
        )
    if cell.control and cell.control.p <= result.alpha:
        warn(
            "The A/A control of this cell differs from zero "
            f"({stats.percent(cell.control.mean):+.2f} %, p = {cell.control.p:.2g}). One cell of "
            f"{round(1 / result.alpha)} does by chance."
        )
    if cell.estimate and cell.hodges_lehmann:
        t, hl = cell.estimate, cell.hodges_lehmann
        if not t.low <= hl.estimate <= t.high or (t.low > 0 > hl.low) or (t.high < 0 < hl.high):
            warn("The t-interval and the Hodges-Lehmann interval disagree about a difference.")
    if result.planned_cycles:
        short = [b for b, d in cell.differences.items() if d.size < result.planned_cycles]
        if short:
            warn(
                f"{result.planned_cycles} cycles were planned for a boot, "
                f"{_count(len(short), 'boot')} kept fewer."
            )
    if cell.rejected > cell.kept:
        warn(f"The gate rejected more cycles ({cell.rejected}) than it kept ({cell.kept}).")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def join(names: Iterable[str], limit: int = 8) -> str:
    """Returns "a, b and c"; what exceeds the limit is counted."""
    names = list(names)
    if len(names) > limit:
        names = [*names[: limit - 1], f"{len(names) - limit + 1} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _difference(estimate: stats.Estimate) -> str:
    return (
        f"{stats.percent(estimate.mean):+.2f} % ({stats.percent(estimate.low):+.2f} to "
        f"{stats.percent(estimate.high):+.2f} %)"
    )


@dataclass
class Sentences:
    """What was found, what was not found, and what was not looked at."""

    found: list[str] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    not_looked_at: list[str] = field(default_factory=list)


def sentences(result: RunResult) -> Sentences:
    """Returns the results in words: the headline, then what is beside it."""
    s = Sentences()
    _say_result(result, s)
    if not result.void:
        for other in result.beside:
            _say_result(other, s, beside=True)
    _say_gaps(result, s)
    for other in result.beside:
        _say_gaps_beside(other, result, s)
    return s


def _say_result(result: RunResult, s: Sentences, beside: bool = False) -> None:
    a, b = result.name_of("A"), result.name_of("B")
    margin = f"{100 * result.margin:g} %"
    measured, of = result.measured, result.metric.of
    if result.void:
        control = result.control
        s.found.append(
            f"The {'comparison' + of if of else 'run'} is void: the A/A control, two instances of"
            f" {a}, differs in {control.rejections} of {control.cells} cells, and chance explains"
            f" at most {control.limit}. So a difference of the drivers cannot be told from one of"
            " their instances. The numbers are shown, but no verdict is given."
        )
    else:
        _say_verdicts(result, s, a, b, margin, beside)
    if result.of(Verdict.MODES):
        cells = result.of(Verdict.MODES)
        s.found.append(
            f"Modes{of} were found in {_count(len(cells), 'cell')} of {len(measured)}, so no mean "
            f"is given there: {join(c.name for c in cells)}."
        )
        # Beside the headline, the forest has what belongs to single cells.
        if not result.void and not beside:
            for cell in cells:
                differences = [
                    _difference(w.estimate)
                    for w in cell.within
                    if w.estimate and w.estimate.p <= result.alpha
                ]
                if differences:
                    s.found.append(
                        f"Within a mode{of} of {cell.name}, {b} differs from {a} by "
                        f"{join(differences)}. That is not adjusted for the number of cells."
                    )
    if result.control and not result.control.failed:
        s.not_found.append(
            f"The A/A control{of} shows no fault: {result.control.rejections} of "
            f"{result.control.cells} cells differ, and chance explains up to "
            f"{result.control.limit}."
        )
    looked = [m for c in result.cells for m in c.modes.values() if m.dip is not None]
    if looked and not any(m.found for m in looked):
        s.not_found.append(
            f"No cell has modes{of} that the samples show"
            + ("." if of else "; modes that are rarer than the boots, or that come with a boot, can"
               " escape them.")
        )  # fmt: skip


def _say_verdicts(
    result: RunResult, s: Sentences, a: str, b: str, margin: str, beside: bool
) -> None:
    tested = [c for c in result.cells if c.estimate]
    metric, of = result.metric, result.metric.of
    if result.overall and result.overall_cells > 1:
        what = (
            f"the {metric.noun} of {b} differs from that of {a}" if of else f"{b} differs from {a}"
        )
        s.found.append(
            f"On average over {_count(result.overall_cells, 'cell')}, {what} by "
            f"{_difference(result.overall)}."
        )
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        cells = result.of(verdict)
        if not cells:
            continue
        cells.sort(key=lambda c: -abs(c.estimate.mean))
        word = {Verdict.SLOWER: "longer", Verdict.FASTER: "shorter"}[verdict]
        what = (
            f"The {metric.noun} of {b} is {word} than that of {a}"
            if of
            else f"{b} is {verdict.value} than {a}"
        )
        text = (
            f"{what} in {_count(len(cells), 'cell')} of {len(tested)}, "
            f"most in {cells[0].name}: {_difference(cells[0].estimate)}"
        )
        if len(cells) > 1:
            text += f"; also in {join(c.name for c in cells[1:])}"
        s.found.append(text + ".")
    small = [c for c in tested if c.small]
    if small:
        s.found.append(
            f"In {_count(len(small), 'cell')} of these the difference{of} is smaller than the "
            f"margin of {margin}: {join(c.name for c in small)}."
        )
    same = result.of(Verdict.EQUIVALENT)
    if same:
        s.found.append(
            f"{b} and {a} are equivalent{' in the ' + metric.noun if of else ''}, within the "
            f"margin of {margin}, in {_count(len(same), 'cell')} of {len(tested)}"
            + ("." if beside else f": {join(c.name for c in same)}.")
        )
    undecided = result.of(Verdict.UNDECIDED)
    if undecided and beside:
        s.not_found.append(
            f"In {_count(len(undecided), 'cell')} of {len(tested)} neither a difference{of} nor "
            "equivalence was found."
        )
    elif undecided:
        worst = max(undecided, key=lambda c: c.detectable)
        size = stats.percent(worst.detectable) if math.isfinite(worst.detectable) else math.inf
        s.not_found.append(
            f"In {_count(len(undecided), 'cell')} of {len(tested)} neither a difference{of} nor "
            f"equivalence was found: {join(c.name for c in undecided)}. That is not evidence of "
            f"no difference: with these boots, a difference of {size:.2g} % in {worst.name} would "
            "be found nine times in ten."
        )
    if tested and not result.of(Verdict.FASTER, Verdict.SLOWER):
        s.not_found.append(
            f"No difference{of} was found in any of {_count(len(tested), 'cell')}, at a false "
            f"discovery rate of {100 * result.alpha:g} %."
        )


def _say_gaps(result: RunResult, s: Sentences) -> None:
    run = result.run
    gap = s.not_looked_at.append
    missing = result.of(Verdict.MISSING)
    if missing:
        gap(
            f"{_count(len(missing), 'cell')} of the plan without a kept cycle: "
            f"{join(c.name for c in missing)}."
        )
    few = result.of(Verdict.TOO_FEW)
    if few:
        gap(
            f"{_count(len(few), 'cell')} with fewer than {stats.MIN_BOOTS} boots. Without those "
            "there is no interval and no verdict, however many cycles a boot has."
        )
    if run.state == "running":
        gap("The run is not complete, or was interrupted: it can be resumed.")
    elif run.state == "aborted":
        gap(f"The run was aborted: {run.reason}.")
    if result.planned_boots and result.boots < result.planned_boots:
        gap(f"{result.boots} of {_count(result.planned_boots, 'planned boot')} were measured.")
    if result.control is None:
        gap(
            f"The A/A control was not judged: {result.control_reason}. So it is not known whether "
            "two instances of one driver would be told apart here."
        )
    elif result.control_cells > result.control.cells:
        gap(
            f"The A/A control was judged by {result.control.cells} of {result.control_cells} "
            "cells, which have it in each boot."
        )
    unlooked = [
        c for c in result.measured if any(m.dip is None for m in c.modes.values()) or not c.modes
    ]
    if unlooked:
        gap(f"Modes were not looked for in {_count(len(unlooked), 'cell')} with few samples.")
    gap(f"One machine: {run.machine['name']}. Other machines can differ in sign.")
    for axis, values in sorted(_axes(result).items()):
        if len(values) == 1:
            gap(f"{axis} was {values[0]} in all cells; other values were not measured.")
    for text in run.plan.get("not_measured", []):
        gap(str(text))


def _say_gaps_beside(result: RunResult, headline: RunResult, s: Sentences) -> None:
    """Says what was not looked at of something beside the headline, but was of the headline."""
    gap, noun = s.not_looked_at.append, result.metric.noun
    lacking = [c for c in result.cells if c.lacking]
    if lacking:
        gap(
            f"The {noun} in {_count(len(lacking), 'cell')}, because it was not recorded, or fewer "
            f"than {LEAST_BEYOND} I/O of a sample lie beyond it: {join(c.name for c in lacking)}."
        )
    if result.control is None and headline.control is not None:
        gap(f"The A/A control{result.metric.of} was not judged: {result.control_reason}.")
    if "beside" not in result.run.plan.get("headline", {}):
        gap(
            f"The {noun} was not named by the plan. It is compared by the rules of the headline, "
            "but was chosen afterwards."
        )


def axis_text(axis: str, value: Any) -> str:
    """Formats the value of an axis; sizes in bytes get a unit."""
    if axis in SIZE_AXES and isinstance(value, int):
        for unit, size in (("m", 1 << 20), ("k", 1 << 10)):
            if value >= size and value % size == 0:
                return f"{value // size}{unit}"
    return str(value)


def _axes(result: RunResult) -> dict[str, list[str]]:
    axes: dict[str, list[str]] = {}
    for cell in result.cells:
        for axis, value in cell.axes.items():
            text = axis_text(axis, value)
            if text not in axes.setdefault(axis, []):
                axes[axis].append(text)
    return axes


# Planning from a pilot.


def select_run(path: Path | str, run: str | None = None) -> Run:
    """Reads a run: the one whose identifier or name is given, otherwise the newest."""
    with Database(path, readonly=True) as database:
        found = database.find_runs()
        if run is not None:
            found = [row for row in found if row[0].startswith(run) or row[1] == run]
        if not found:
            raise DatabaseError(f"{path}: there is no run" + (f" {run}" if run else ""))
        return database.load_run(found[-1][0])


def plan_power(
    db_path: Path | str,
    run: str | None = None,
    *,
    effect: float | None = None,
    cycles: Sequence[int] = (2, 5, 10, 20, 40),
) -> str:
    """Returns in words how many boots and cycles give a power of 90 %.

    ``effect`` is the difference that the headline test shall find, by default the margin.
    """
    pilot = select_run(db_path, run)
    margin, alpha = float(pilot.plan.get("margin", 0.01)), float(pilot.plan.get("alpha", 0.05))
    effect = margin if effect is None else effect
    what = headline_metric(pilot.plan)
    found = []
    boots = 0
    for name in pilot.cells:
        differences = list(_cell(pilot, name, what).differences.values())
        boots = max(boots, len(differences))
        if len(differences) > 1:
            found.append((name, stats.variance_components(differences)))
    if not found:
        if boots == 1:
            raise stats.TooFewBoots(
                "the pilot has one boot, which cannot tell how much boots differ; make a pilot of"
                " two boots at least, better five"
            )
        raise DatabaseError(f"{db_path}: the run has no cell with kept cycles")
    found.sort(key=lambda item: item[1].variance(10))
    chosen = {
        "median cell": found[(len(found) - 1) // 2],
        "noisy cell (9 of 10 are quieter)": found[min(len(found) - 1, int(0.9 * len(found)))],
    }
    seconds = [c.ended - c.started for c in pilot.cycles if c.state == "kept" and c.ended]
    each = float(np.median(seconds)) if seconds else 0.0
    lines = [
        f"To find a difference of {100 * effect:g} %, and to confirm equivalence within "
        f"{100 * margin:g} % where there is none,",
        f"each with a power of 90 % at a level of {100 * alpha:g} % for one cell:",
        "",
    ]
    for label, (name, components) in chosen.items():
        upper = stats.upper_pilot(components)
        lines += [
            f"{label}: {name}",
            f"  standard deviation of cycles {100 * math.sqrt(components.within):.2f} %, "
            f"of boots {100 * math.sqrt(components.between):.2f} % "
            f"({components.boots} boots, {components.cycles:.0f} cycles)",
            "  cycles   boots: t   TOST   cautious: t   TOST   time of a boot",
        ]
        for need, careful in zip(
            stats.power(components, effect, margin, cycles, alpha),
            stats.power(upper, effect, margin, cycles, alpha),
            strict=True,
        ):
            minutes = each * need.cycles * len(pilot.cells) / 60
            lines.append(
                f"  {need.cycles:6}   {_boots(need.boots_t):>8} {_boots(need.boots_tost):>6}"
                f"   {_boots(careful.boots_t):>11} {_boots(careful.boots_tost):>6}"
                f"   {minutes:8.0f} minutes"
            )
        lines.append("")
    lines += [
        "The cautious columns take the upper 80 % limit of the variance over boots, because the",
        f"pilot has only {_count(boots, 'boot')}. The adjustment for many cells takes more boots",
        "where few cells differ.",
    ]
    return "\n".join(lines) + "\n"


def _boots(number: int | None) -> str:
    return ">200" if number is None else str(number)
