# SPDX-License-Identifier: GPL-2.0
"""What the documentation shows of a measurement: the chart, its numbers, the budgets."""

import csv
from pathlib import Path

import chart
import goals
from table import ALL, C, LOCKED, MEMORY_FIGURES, OWN, PAIRS, REFERENCE, RUST, SYNC_TITLE, number, whole

COLUMNS = [("driver", OWN, 0), ("lock, tree, timer", SYNC_TITLE, 0), ("all but copies", ALL, 0), ("locked", LOCKED, 1)]


def counts(measurement):
    """The lines of the table of rows."""
    yield ["Row", *(f"{title}: {who}" for title, *_ in COLUMNS for who in (RUST, C)), f"all but copies: {REFERENCE}"]
    for row in measurement.rows:
        cells = [(PAIRS[title](measurement, row, who), digits) for _, title, digits in COLUMNS for who in (RUST, C)]
        cells.append((PAIRS[ALL](measurement, row, REFERENCE), 0))
        yield [row, *(number(value, digits) for value, digits in cells)]


def budgets(measurement):
    """The lines of the table of budgets; of memory the budget is what C takes."""
    yield ["What", f"set beside {C}'s", f"{C} here", "budget here", RUST]
    for title, budget, then, c, restated, rust in goals.restated(measurement):
        digits = 2 if then < 10 else 0
        yield [title, f"{budget:g} of {then:g}", *(number(value, digits) for value in (c, restated, rust))]
    for what, title in MEMORY_FIGURES.items():
        c, rust = (measurement.memory.get((what, who)) for who in (C, RUST))
        yield [title, f"no more than {C}", whole(c), whole(c), whole(rust)]


def write(directory, measurement):
    """All three files."""
    target = Path(directory)
    (target / "rnull-counts.svg").write_text(chart.svg(measurement), encoding="utf-8")
    for name, lines in (("rnull-counts.csv", counts(measurement)), ("rnull-budgets.csv", budgets(measurement))):
        with open(target / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
