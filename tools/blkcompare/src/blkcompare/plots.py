# SPDX-License-Identifier: GPL-2.0
"""Plots as SVG text.

Colours come from classes that the style sheet of the report sets for light and dark.  Dots are
lines of no length with round ends, which take few bytes and stay round when a plot is stretched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from . import stats
from .analysis import CellResult, Metric, RunResult
from .modes import Modes

CLASS = {"A": "a", "B": "b", "A2": "c"}

WIDTH, HEIGHT = 380, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 34


def number(x: float) -> str:
    """Formats a coordinate."""
    return f"{x:.1f}".removesuffix(".0")


def si(x: float) -> str:
    """Formats a number with a prefix: 1.25 M, 430 k."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(x) >= size:
            return f"{x / size:.3g} {unit}"
    return f"{x:.3g}"


def duration(ns: float) -> str:
    """Formats nanoseconds."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def level(metric: Metric) -> Callable[[float], str]:
    """Returns what formats a quantity on an axis."""
    return duration if metric.percentile else si


def signed(x: float) -> str:
    """Formats a tick of an axis of differences."""
    return f"{x:+g}" if x else "0"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Returns round numbers between two limits."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    # The sum avoids the negative zero.
    return [k * step + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass
class Axes:
    """A plot with a linear scale from the data to the drawing in each direction."""

    x: tuple[float, float]
    y: tuple[float, float]
    label: str
    height: int = HEIGHT

    def __post_init__(self) -> None:
        self.parts: list[str] = []

    def px(self, x: float) -> float:
        low, high = self.x
        return LEFT + (WIDTH - LEFT - RIGHT) * ((x - low) / (high - low) if high > low else 0.5)

    def py(self, y: float) -> float:
        low, high = self.y
        span = self.height - TOP - BOTTOM
        return TOP + span * (1 - ((y - low) / (high - low) if high > low else 0.5))

    def text(self, x: float, y: float, text: str, anchor: str = "middle", cls: str = "") -> None:
        extra = f' class="{cls}"' if cls else ""
        self.parts.append(
            f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{extra}>'
            f"{escape(text)}</text>"
        )

    def path(self, cls: str, d: str) -> None:
        if d:
            self.parts.append(f'<path class="{cls}" d="{d}"/>')

    def line(self, cls: str, points: Sequence[tuple[float, float]]) -> None:
        self.path(
            cls,
            "".join(
                f"{'L' if i else 'M'}{number(self.px(x))} {number(self.py(y))}"
                for i, (x, y) in enumerate(points)
            ),
        )

    def dots(self, cls: str, points: Sequence[tuple[float, float]]) -> None:
        d = "".join(f"M{number(self.px(x))} {number(self.py(y))}h0" for x, y in points)
        self.path(f"dot {cls}", d)

    def crosses(self, cls: str, points: Sequence[tuple[float, float]]) -> None:
        d = "".join(
            f"M{number(self.px(x) - 2)} {number(self.py(y) - 2)}l4 4m0-4l-4 4" for x, y in points
        )
        self.path(f"cross {cls}", d)

    def grid_y(self, format_: Callable[[float], str], values: Sequence[float]) -> None:
        d = ""
        for value in values:
            y = self.py(value)
            d += f"M{LEFT} {number(y)}H{WIDTH - RIGHT}"
            self.text(LEFT - 5, y + 4, format_(value), "end")
        self.path("grid", d)

    def labels_x(self, labels: Iterable[tuple[float, str]]) -> None:
        for value, text in labels:
            self.text(self.px(value), self.height - BOTTOM + 14, text)

    def title_x(self, text: str) -> None:
        self.text((LEFT + WIDTH - RIGHT) / 2, self.height - 4, text, cls="axis")

    def svg(self) -> Markup:
        return Markup(
            f'<svg class="plot" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            f'aria-label="{escape(self.label)}">{"".join(self.parts)}</svg>'
        )


def _range(values: Sequence[float], margin: float = 0.06) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = (high - low) * margin or abs(high) * 0.01 or 1.0
    return low - pad, high + pad


def samples_plot(result: RunResult, cell: CellResult) -> Markup:
    """Samples of a cell in order of time, with a gap between boots."""
    x = 0.0
    kept: dict[str, list[tuple[float, float]]] = {"A": [], "B": [], "A2": []}
    rejected: list[tuple[float, float]] = []
    bands: dict[int, list[float]] = {}
    boot = None
    for cycle in result.run.cycles:
        if cycle.cell != cell.name:
            continue
        if boot is not None and cycle.boot != boot:
            x += 4
        boot = cycle.boot
        for sample in cycle.samples:
            point = (x, result.metric.value(sample))
            if point[1] is not None:
                (kept[sample.driver] if cycle.state == "kept" else rejected).append(point)
            band = bands.setdefault(boot, [x, x])
            band[1] = x
            x += 1
    values = [y for points in [*kept.values(), rejected] for _, y in points]
    axes = Axes((-1, max(x, 1)), _range(values), f"Samples of {cell.name} in order of time")
    d = ""
    bottom = axes.height - BOTTOM
    every = max(1, math.ceil(len(bands) / 12))
    for index, (number_, (first, last)) in enumerate(sorted(bands.items())):
        left, right = axes.px(first - 0.8), axes.px(last + 0.8)
        d += f"M{number(left)} {TOP}H{number(right)}V{bottom}H{number(left)}z"
        if index % every == 0:
            axes.text((left + right) / 2, bottom + 14, str(number_))
    axes.path("band", d)
    axes.grid_y(level(result.metric), ticks(*axes.y, 4))
    axes.title_x("boots, in order of time")
    for driver, points in kept.items():
        axes.dots(CLASS[driver], points)
    axes.crosses("rejected", rejected)
    return axes.svg()


def boots_plot(cell: CellResult) -> Markup:
    """Differences of each boot: of the drivers, and of the control."""
    boots = sorted(set(cell.differences) | set(cell.control_differences))
    series = (("b", -0.14, cell.differences), ("c", 0.14, cell.control_differences))
    values = [0.0]
    for _, _, differences in series:
        values += [stats.percent(v) for d in differences.values() for v in d]
    axes = Axes((-0.6, len(boots) - 0.4), _range(values), f"Differences of {cell.name} by boot")
    axes.grid_y(lambda v: f"{signed(v)} %", ticks(*axes.y, 4))
    axes.line("zero", [(axes.x[0], 0), (axes.x[1], 0)])
    every = max(1, math.ceil(len(boots) / 14))
    for index in range(0, len(boots), every):
        axes.text(axes.px(index), axes.height - BOTTOM + 14, str(boots[index]))
    for cls, shift, differences in series:
        cycles, means = [], ""
        for index, boot in enumerate(boots):
            if boot not in differences:
                continue
            cycles += [(index + shift, stats.percent(v)) for v in differences[boot]]
            mean = axes.py(stats.percent(float(differences[boot].mean())))
            left = axes.px(index + shift - 0.12)
            means += f"M{number(left)} {number(mean)}H{number(axes.px(index + shift + 0.12))}"
        axes.dots(f"{cls} faint", cycles)
        if not cell.has_modes:
            axes.path(f"mean {cls}", means)
    axes.title_x("boot; dots: cycles" + ("" if cell.has_modes else ", lines: means"))
    return axes.svg()


def histogram(result: RunResult, cell: CellResult) -> Markup:
    """Histograms of the samples of each driver, with the mixture and the limits of modes."""
    drivers = [d for d in ("A", "B", "A2") if d in cell.modes]
    everything = np.concatenate([a for d in drivers for a in cell.modes[d].samples])
    low, high = _range(list(everything))
    # Rules from the quartiles choose too few bins where there are modes.
    bins = int(np.clip(2 * math.sqrt(everything.size / len(drivers)), 24, 60))
    edges = np.linspace(low, high, bins + 1)
    row = (HEIGHT - TOP - BOTTOM) / len(drivers)
    axes = Axes((low, high), (0, 1), f"Histogram of the samples of {cell.name}")
    for index, driver in enumerate(drivers):
        x = np.concatenate(cell.modes[driver].samples)
        counts, _ = np.histogram(x, edges)
        base = TOP + (index + 1) * row
        scale = (row - 14) / max(1, counts.max())
        d = f"M{number(axes.px(low))} {number(base)}"
        for count, left, right in zip(counts, edges, edges[1:], strict=False):
            y = base - count * scale
            d += f"L{number(axes.px(left))} {number(y)}H{number(axes.px(right))}"
        axes.path(f"bars {CLASS[driver]}", d + f"V{number(base)}z")
        axes.text(LEFT - 5, base - 2, {"A2": "A/A"}.get(driver, driver), "end")
        modes = cell.modes[driver]
        if modes.modes is not None and modes.modes.k > 1:
            _modes(axes, modes.modes, x.size * (edges[1] - edges[0]) * scale, base, row)
    # The scale is logarithmic; its labels are round numbers.
    values = [v for v in ticks(math.exp(low), math.exp(high), 4) if v > 0]
    axes.labels_x((math.log(v), level(result.metric)(v)) for v in values)
    axes.title_x(result.metric.title if result.metric.percentile else result.metric.unit)
    return axes.svg()


def _modes(axes: Axes, modes: Modes, scale: float, base: float, row: float) -> None:
    grid = np.linspace(*axes.x, 160)
    heights = np.minimum(modes.mixture.density(grid) * scale, row - 6)
    d = "".join(
        f"{'L' if i else 'M'}{number(axes.px(x))} {number(base - h)}"
        for i, (x, h) in enumerate(zip(grid, heights, strict=True))
    )
    axes.path("curve", d)
    cuts = "".join(f"M{number(axes.px(v))} {number(base)}v{number(6 - row)}" for v in modes.limits)
    axes.path("cut", cuts)


def latency_plot(cell: CellResult) -> Markup:
    """Latency percentiles of each driver, as medians over samples."""
    names = sorted({p for found in cell.latency.values() for p in found if p != "mean"}, key=float)
    values = [
        v for found in cell.latency.values() for p, v in found.items() if p in names and v > 0
    ]
    if not values:
        return Markup("")
    low, high = math.log10(min(values)), math.log10(max(values))
    axes = Axes((-0.3, len(names) - 0.7), _range([low, high]), f"Latency of {cell.name}")
    powers = [
        math.log10(m * 10.0**e)
        for e in range(math.floor(axes.y[0]), math.ceil(axes.y[1]) + 1)
        for m in ((1, 2, 5) if high - low < 2 else (1,))
        if axes.y[0] <= math.log10(m * 10.0**e) <= axes.y[1]
    ]
    axes.grid_y(lambda v: duration(10**v), powers)
    every = max(1, math.ceil(len(names) / 8))
    axes.labels_x((i, f"{names[i]}") for i in range(0, len(names), every))
    # The control is below the drivers, which it may cover.
    for driver in ("A2", "A", "B"):
        found = cell.latency.get(driver, {})
        points = [(i, math.log10(found[p])) for i, p in enumerate(names) if found.get(p, 0) > 0]
        axes.line(f"series {CLASS[driver]}", points)
        axes.dots(CLASS[driver], points)
    axes.title_x("percentile of the latency")
    return axes.svg()


def p_values_plot(result: RunResult) -> Markup:
    """Sorted p-values of the cells, A/B and A/A, against those of no difference."""
    axes = Axes((0, 1), (0, 1), "Sorted p-values of A/B and of the control")
    axes.grid_y(lambda v: f"{v:g}", [0, 0.25, 0.5, 0.75, 1])
    axes.labels_x((v, f"{v:g}") for v in (0, 0.25, 0.5, 0.75, 1))
    axes.line("zero", [(0, 0), (1, 1)])
    for cls, found in (
        ("b", [c.estimate.p for c in result.cells if c.estimate]),
        ("c", [c.control.p for c in result.cells if c.control]),
    ):
        ordered = sorted(found)
        axes.dots(cls, [((i + 0.5) / len(ordered), p) for i, p in enumerate(ordered)])
    axes.title_x("expected without a difference")
    return axes.svg()


def strip_plot(result: RunResult) -> Markup:
    """The mean of each cell, for A/B and A/A on one axis."""
    rows = [
        ("b", [stats.percent(c.mean) for c in result.cells if c.mean is not None], "A/B"),
        ("c", [stats.percent(c.control.mean) for c in result.cells if c.control], "A/A"),
    ]
    values = [0.0, *(v for _, found, _ in rows for v in found)]
    axes = Axes(_range(values), (0, 1), "Means of the cells, A/B and A/A")
    axes.labels_x((v, f"{signed(v)} %") for v in ticks(*axes.x, 5))
    axes.path("zero", f"M{number(axes.px(0))} {TOP}V{axes.height - BOTTOM}")
    for row, (cls, found, label) in enumerate(rows):
        y0 = 0.75 - 0.5 * row
        axes.text(LEFT - 5, axes.py(y0) + 4, label, "end")
        axes.dots(cls, _swarm(found, axes, y0))
    axes.title_x("mean difference of a cell")
    return axes.svg()


def _swarm(values: Sequence[float], axes: Axes, y0: float) -> list[tuple[float, float]]:
    """Places dots beside each other that would cover each other."""
    placed: list[tuple[float, float]] = []
    step = 5 / (axes.height - TOP - BOTTOM)
    for value in sorted(values):
        x = axes.px(value)
        for k in range(17):
            y = y0 + step * ((k + 1) // 2) * (1 if k % 2 else -1)
            if all(math.hypot(x - axes.px(a), (y - b) / step * 5) >= 4.5 for a, b in placed):
                break
        placed.append((value, y))
    return placed


def trend_plot(runs: Sequence[RunResult]) -> Markup:
    """The mean over cells of each run with its interval, with a line for each machine."""
    shown = [r for r in runs if r.overall]
    values = [0.0]
    for r in shown:
        values += [stats.percent(r.overall.low), stats.percent(r.overall.high)]
    axes = Axes((-0.5, len(shown) - 0.5), _range(values), "Trend of the mean over cells")
    axes.grid_y(lambda v: f"{signed(v)} %", ticks(*axes.y, 5))
    axes.line("zero", [(axes.x[0], 0), (axes.x[1], 0)])
    every = max(1, math.ceil(len(shown) / 12))
    axes.labels_x((i, str(i + 1)) for i in range(0, len(shown), every))
    machines = list(dict.fromkeys(r.run.machine["id"] for r in shown))
    for index, machine in enumerate(machines):
        cls = f"m{index % 6}"
        own = [(i, r) for i, r in enumerate(shown) if r.run.machine["id"] == machine]
        axes.line(f"series {cls}", [(i, stats.percent(r.overall.mean)) for i, r in own])
        for i, r in own:
            void = " hollow" if r.void else ""
            axes.line(
                f"interval {cls}{void}",
                [(i, stats.percent(r.overall.low)), (i, stats.percent(r.overall.high))],
            )
        axes.dots(f"{cls} big", [(i, stats.percent(r.overall.mean)) for i, r in own])
    axes.title_x("run, as numbered in the table")
    return axes.svg()


# The forest plot is a table of HTML, so that its text has the size of the page's.


@dataclass(frozen=True)
class Scale:
    """The horizontal scale of a forest plot, in percent of its width."""

    limit: float  # in percent of difference, to both sides

    def at(self, percent: float) -> float:
        return min(100.0, max(0.0, 50 + 48 * percent / self.limit))

    def beyond(self, percent: float) -> bool:
        return abs(percent) > self.limit * 50 / 48

    @property
    def ticks(self) -> list[tuple[float, str]]:
        return [(self.at(v), signed(v)) for v in ticks(-self.limit, self.limit, 6)]


def forest_scale(result: RunResult) -> Scale:
    """Chooses a scale on which an exceptional cell does not squeeze all others."""
    bounds = [100 * result.margin * 1.2]
    for cell in result.cells:
        for estimate in (cell.estimate, cell.control):
            if estimate:
                bounds.append(abs(stats.percent(estimate.low)))
                bounds.append(abs(stats.percent(estimate.high)))
        if cell.mean is not None and not cell.estimate:
            bounds.append(abs(stats.percent(cell.mean)))
        bounds += [abs(stats.percent(w.mean)) for w in cell.within]
    return Scale(min(max(bounds), max(bounds[0], 4 * float(np.quantile(bounds, 0.9)))))


def forest_row(cell: CellResult, result: RunResult, scale: Scale) -> Markup:
    """The intervals of a cell: A/B thick, A/A thin below it, and the differences within modes."""
    parts = []
    left, right = (scale.at(s * 100 * result.margin) for s in (-1, 1))
    parts.append(
        f'<rect class="margin" x="{left:.2f}" y="0" width="{right - left:.2f}" height="24"/>'
    )
    parts.append('<path class="zero" d="M50 0V24"/>')

    def interval(estimate: stats.Estimate, y: float, cls: str) -> None:
        low, high, mean = (stats.percent(v) for v in (estimate.low, estimate.high, estimate.mean))
        parts.append(
            f'<path class="interval {cls}" d="M{scale.at(low):.2f} {y}H{scale.at(high):.2f}"/>'
        )
        if not scale.beyond(mean):
            parts.append(f'<path class="dot {cls}" d="M{scale.at(mean):.2f} {y}h0"/>')
        for bound, edge in ((low, 0.7), (high, 99.3)):
            if scale.beyond(bound) and (bound < 0) == (edge < 50):
                parts.append(f'<path class="beyond {cls}" d="M{edge} {y - 4}v8"/>')

    if cell.estimate:
        interval(cell.estimate, 8, "b")
    elif cell.mean is not None and not scale.beyond(stats.percent(cell.mean)):
        parts.append(f'<path class="dot b" d="M{scale.at(stats.percent(cell.mean)):.2f} 8h0"/>')
    for index, within in enumerate(cell.within):
        y = 5 + 5 * index
        if within.estimate:
            interval(within.estimate, y, "mode")
        else:
            x = scale.at(stats.percent(within.mean))
            parts.append(f'<path class="dot mode" d="M{x:.2f} {y}h0"/>')
    if cell.control:
        interval(cell.control, 18, "c")
    return Markup(
        '<svg viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )
