# SPDX-License-Identifier: GPL-2.0
"""The table for the terminal: null_blk beside rnull, a line per row."""

from classes import ALLOCATION, BLOCK, CLASSES, COPY, SYNC

C, RUST, REFERENCE = "null_blk", "rnull", "brd"
NOT_COPY = tuple(name for name in CLASSES if name != COPY)

# Title, and the function from (measurement, row, driver) to the number.
PAIRS = [
    ("driver+abstr.", lambda m, row, who: m.own(row, who)),
    ("lock/tree/timer", lambda m, row, who: m.get(row, who, "instructions", (SYNC,))),
    ("allocation", lambda m, row, who: m.get(row, who, "instructions", (ALLOCATION,))),
    ("block layer", lambda m, row, who: m.get(row, who, "instructions", (BLOCK,))),
    ("all but copies", lambda m, row, who: m.get(row, who, "instructions", NOT_COPY)),
    ("locked", lambda m, row, who: m.get(row, who, "locked")),
    ("calls", lambda m, row, who: m.get(row, who, "calls")),
]
WITH_RATIO = {"driver+abstr.", "all but copies"}


def number(value, digits=0):
    """As short as can be."""
    if value is None:
        return "-"
    return f"{value:,.{digits}f}"


def cells(title, c, rust):
    """The two numbers of a pair, with their ratio where it is shown."""
    digits = 1 if title == "locked" else 0
    found = [number(c, digits), number(rust, digits)]
    if title in WITH_RATIO:
        found.append(f"{rust / c:.2f}" if c and rust is not None else "-")
    return found


def align(table, titles):
    """Lines of text from lists of groups of cells; every group as wide as its widest cells need, and its title."""
    widths = [[max(len(line[g][i]) for line in table) for i in range(len(group))] for g, group in enumerate(table[0])]
    for row, title in zip(widths, titles):
        row[0] += max(0, len(title) - sum(row) - len(row) + 1)
    for line in table:
        padded = [[cell.rjust(width) for cell, width in zip(group, row)] for group, row in zip(line, widths)]
        padded[0] = [line[0][0].ljust(widths[0][0])]
        yield " | ".join(" ".join(group) for group in padded).rstrip()


def above(measurement, row):
    """In what rnull costs more than null_blk, which it must not."""
    own = measurement.own(row, RUST), measurement.own(row, C)
    locked = (measurement.get(row, who, "locked") for who in (RUST, C))
    words = []
    if None not in own and own[0] > own[1] + 0.5:
        words.append("driver")
    rust, c = locked
    if None not in (rust, c) and rust > c * 1.003 + 0.05:
        words.append("locked")
    return " ".join(words)


def of_rows(measurement):
    """The table, as lines."""
    titles, head = [""], [["row"]]
    for title, _ in PAIRS:
        head.append(["C", "rnull"] + (["ratio"] if title in WITH_RATIO else []))
        titles.append(title)
    table = [[*head, [REFERENCE], [""]]]
    for row in measurement.rows:
        pairs = [cells(title, get(measurement, row, C), get(measurement, row, RUST)) for title, get in PAIRS]
        table.append([[row], *pairs, [number(measurement.get(row, REFERENCE, "instructions", NOT_COPY))], [above(measurement, row)]])
    lines = list(align(table, titles))
    return [over(titles, lines[-1]), lines[0], "-" * max(map(len, lines)), *lines[1:]]


def over(titles, line):
    """The titles of the groups, each above the group of the line that it names."""
    text, starts = "", [0] + [i + 2 for i, letter in enumerate(line) if letter == "|"]
    for title, start in zip(titles, starts):
        text = text[: start - 1].ljust(start) + title
    return text


def of_memory(measurement):
    """The memory figures, as lines."""
    for what, text in (("per-page", "bytes for 4 KiB of data"), ("per-request", "bytes for an idle request")):
        c, rust = (measurement.memory.get((what, who)) for who in (C, RUST))
        if c is not None or rust is not None:
            yield f"{text}: {C} {number(c)}, {RUST} {number(rust)}"
