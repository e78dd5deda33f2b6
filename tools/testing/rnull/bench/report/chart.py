# SPDX-License-Identifier: GPL-2.0
"""The chart: for each row what rnull costs beside null_blk, in three ways of counting."""

import io
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from measurement import RUST, C
from table import ALL, COSTS, LOCKED, OWN, number

PANELS = [("driver and abstraction", "instructions", OWN, 0),
          ("whole kernel without copies", "instructions", ALL, 0),
          ("whole kernel", "locked operations", LOCKED, 1)]
MOST = 1.25  # times null_blk; a longer bar ends there, with an arrow
# Legible on a light page and on a dark one; the background is transparent.
TEXT, GREY, BLUE, ORANGE = "#7a7a7a", "#9a9a9a70", "#3d85c6", "#e07b00"


def heights(rows):
    """Row -> its place from the top, with a gap between groups of rows, such as null/direct."""
    place, before = {}, None
    for row in rows:
        group = row.split("/")[:2]
        place[row] = len(place) and max(place.values()) + (1 if group == before else 1.6)
        before = group
    return place


def panel(axes, measurement, place, title, unit, cost, digits):
    """C as a wide grey bar, rnull as a narrow one, in another colour beyond C; the numbers."""
    for row, y in place.items():
        c, rust = (COSTS[cost](measurement, row, driver) for driver in (C, RUST))
        if not c:
            continue
        axes.barh(y, 1, 0.8, color=GREY)
        axes.barh(y, min(rust / c, 1), 0.4, color=BLUE)
        axes.barh(y, max(0, min(rust / c, MOST) - 1), 0.4, left=1, color=ORANGE)
        if rust / c > MOST:
            axes.plot(MOST, y, ">", color=ORANGE, markersize=5, clip_on=False)
        axes.text(1.7, y, number(rust, digits), ha="right", va="center")
        axes.text(2.1, y, number(c, digits), ha="right", va="center")
    axes.text(1.7, -1, RUST, ha="right", weight="bold")
    axes.text(2.1, -1, C, ha="right", weight="bold")
    axes.set_title(f"{title}:\n{unit} per I/O", loc="left", size=9, color=TEXT)
    axes.set(xlim=(0, 2.15), xticks=[0, 1], xticklabels=["0", "100 %"])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def write(path, measurement):
    """An SVG file."""
    both = (C, RUST)
    place = heights([row for row in measurement.rows if all(measurement.own(row, d) for d in both)])
    matplotlib.rcParams |= {"svg.hashsalt": "rnull", "svg.fonttype": "none", "font.size": 8}
    matplotlib.rcParams |= {f"{what}.color": TEXT for what in ("text", "xtick", "ytick")}
    matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans", "sans-serif"]
    figure = Figure(figsize=(11, 1.3 + 0.19 * len(place)), layout="constrained")
    for axes, columns in zip(figure.subplots(1, len(PANELS), sharey=True), PANELS):
        panel(axes, measurement, place, *columns)
        axes.set_yticks(list(place.values()), place.keys())
    axes.set_ylim(max(place.values()) + 0.6, -1.2)
    figure.suptitle(
        f"What an I/O costs the kernel: {RUST} (blue; orange where more) as a part of {C} (grey)",
        size=10)
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    lines.insert(1, "<!-- SPDX-License-Identifier: GPL-2.0 -->")
    Path(path).write_text("\n".join([*lines, ""]), encoding="utf-8")
