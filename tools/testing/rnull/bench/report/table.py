# SPDX-License-Identifier: GPL-2.0
"""The table for the terminal: null_blk beside rnull, a line per row."""

from classes import ALLOCATION, BLOCK, CLASSES, COPY, SYNC

C, RUST, REFERENCE = "null_blk", "rnull", "brd"
NOT_COPY = tuple(name for name in CLASSES if name != COPY)

OWN, SYNC_TITLE, ALL, LOCKED = "driver+abstr.", "lock/tree/timer", "all but copies", "locked"
MEMORY_FIGURES = {"per-page": "bytes for 4 KiB of data", "per-request": "bytes for an idle request"}

# Title -> the function from (measurement, row, driver) to the number.
PAIRS = {
    OWN: lambda m, row, who: m.own(row, who),
    SYNC_TITLE: lambda m, row, who: m.get(row, who, "instructions", (SYNC,)),
    "allocation": lambda m, row, who: m.get(row, who, "instructions", (ALLOCATION,)),
    "block layer": lambda m, row, who: m.get(row, who, "instructions", (BLOCK,)),
    ALL: lambda m, row, who: m.get(row, who, "instructions", NOT_COPY),
    LOCKED: lambda m, row, who: m.get(row, who, "locked"),
    "calls": lambda m, row, who: m.get(row, who, "calls"),
}


def number(value, digits=0):
    """As short as can be."""
    if value is None:
        return "-"
    return f"{value:,.{digits}f}"


def whole(value):
    """As much of it as is whole."""
    return number(value if value is None else int(value))


def heads(title):
    """What stands above the cells of a pair."""
    return {ALL: ["C", "rnull", "ratio", REFERENCE], OWN: ["C", "rnull", "ratio"]}.get(title, ["C", "rnull"])


def cells(measurement, row, title, get):
    """The numbers of a pair, with their ratio where it is shown."""
    c, rust = (get(measurement, row, who) for who in (C, RUST))
    digits = 1 if title == LOCKED else 0
    found = [number(c, digits), number(rust, digits)]
    if title in (OWN, ALL):
        found.append(f"{rust / c:.2f}" if c and rust is not None else "-")
    if title == ALL:
        found.append(number(get(measurement, row, REFERENCE)))
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


def at_or_below(c, rust, part, least):
    """Whether rnull costs no more than null_blk, but for what runs of the same differ in; None if one does not do it."""
    return None if None in (c, rust) else rust <= c * (1 + part) + least


# What is asked of every row, the hardest last: title, how much more may be chance (a part, a number), the cost.
BARS = [
    ("driver", 0, 0.5, PAIRS[OWN]),
    ("locked", 0.003, 0.05, PAIRS[LOCKED]),
    ("all", 0.003, 0, PAIRS[ALL]),
]


def verdicts(measurement, row):
    """For each bar whether the row is at or below C."""
    found = [(*(cost(measurement, row, who) for who in (C, RUST)), part, least) for _, part, least, cost in BARS]
    return [at_or_below(*each) for each in found]


def of_rows(measurement):
    """The table, as lines."""
    titles = ["", *PAIRS, "at or below C"]
    table = [[["row"], *(heads(title) for title in PAIRS), [title for title, *_ in BARS]]]
    for row in measurement.rows:
        pairs = [cells(measurement, row, title, get) for title, get in PAIRS.items()]
        words = [{True: "ok", False: "ABOVE", None: "-"}[verdict] for verdict in verdicts(measurement, row)]
        table.append([[row], *pairs, words])
    lines = list(align(table, titles))
    return [over(titles, lines[-1]), lines[0], "-" * max(map(len, lines)), *lines[1:]]


def of_bars(measurement):
    """For each bar how many rows are at or below C, as lines."""
    every = [verdicts(measurement, row) for row in measurement.rows]
    for index, (title, *_) in enumerate(BARS):
        found = [row[index] for row in every if row[index] is not None]
        if found:
            yield f"{title}: {sum(found)} of {len(found)} rows at or below C"


def over(titles, line):
    """The titles of the groups, each above the group of the line that it names."""
    text, starts = "", [0] + [i + 2 for i, letter in enumerate(line) if letter == "|"]
    for title, start in zip(titles, starts):
        text = text[: start - 1].ljust(start) + title
    return text


def of_memory(measurement):
    """The memory figures, as lines."""
    for what, text in MEMORY_FIGURES.items():
        c, rust = (measurement.memory.get((what, who)) for who in (C, RUST))
        if c is not None or rust is not None:
            verdict = {True: ", ok", False: ", ABOVE", None: ""}[at_or_below(c, rust, 0.01, 0)]
            yield f"{text}: {C} {whole(c)}, {RUST} {whole(rust)}{verdict}"
