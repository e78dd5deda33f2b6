# SPDX-License-Identifier: GPL-2.0
"""The tables, as lines: null_blk beside rnull, a change beside what was before."""

import tabulate

import goals
from functions import ALLOCATION, BLOCK, CLASSES, COPY, SYNC
from measurement import REFERENCE, RUST, C

OWN, SYNC_TITLE, ALL, LOCKED = "driver,\nabstr.", "lock,\ntree,\ntimer", "all but\ncopies", "locked"
MEMORY_FIGURES = {
    "per-page": "bytes for a page of 4 KiB: all are written",
    "per-page-64k": "bytes for a page of 4 KiB: one is written in each 64 KiB",
    "per-page-1m": "bytes for a page of 4 KiB: one is written in each MiB",
    "per-request": "bytes for an idle request",
}

# Title -> the function from (measurement, row, driver) to the number.
COSTS = {
    OWN: lambda m, row, driver: m.own(row, driver),
    SYNC_TITLE: lambda m, row, driver: m.get(row, driver, "instructions", (SYNC,)),
    "allocation": lambda m, row, driver: m.get(row, driver, "instructions", (ALLOCATION,)),
    "block\nlayer": lambda m, row, driver: m.get(row, driver, "instructions", (BLOCK,)),
    ALL: lambda m, row, driver: m.get(row, driver, "instructions",
                                      set(CLASSES) - {COPY}),
    LOCKED: lambda m, row, driver: m.get(row, driver, "locked"),
    "calls": lambda m, row, driver: m.get(row, driver, "calls"),
}

# What every row is to reach: title, the difference that repeated runs may have (a part, a number).
LIMITS = {"driver": (OWN, 0, 0.5), "locked": (LOCKED, 0.003, 0.05), "all": (ALL, 0.003, 0)}
tabulate.MIN_PADDING = 0
LEAST_CHANGE = 0.5  # instructions per I/O that are worth a line


def number(value, digits=0):
    """As short as can be."""
    return "-" if value is None else f"{value:,.{digits}f}"


def whole(value):
    """The integer part."""
    return number(value if value is None else int(value))


def names(title):
    """The columns below a title."""
    return ["C", RUST, *["ratio"] * (title in (OWN, ALL)), *[REFERENCE] * (title == ALL)]


def cells(measurement, row, title):
    """The texts in these columns."""
    costs = {driver: COSTS[title](measurement, row, driver) for driver in (C, RUST, REFERENCE)}
    c, rust = costs[C], costs[RUST]
    texts = {driver: number(cost, 1 if title == LOCKED else 0) for driver, cost in costs.items()}
    texts |= {"C": texts[C], "ratio": f"{rust / c:.2f}" if c and rust is not None else "-"}
    return [texts[name] for name in names(title)]


def align(header, table):
    """Lines of text: all but the first column to the right, titles down to the rule."""
    height = max(title.count("\n") for title in header)
    header = ["\n" * (height - title.count("\n")) + title for title in header]
    right = ["right"] * (len(header) - 1)
    text = tabulate.tabulate(table, header, disable_numparse=True, colalign=["left", *right])
    return text.split("\n")


def at_or_below(c, rust, part, least):
    """Whether rnull costs no more than null_blk, with the tolerance; None if one lacks the row."""
    return None if None in (c, rust) else rust <= c * (1 + part) + least


def verdicts(measurement, row):
    """For each limit whether the row is at or below C."""
    return [
        at_or_below(*(COSTS[title](measurement, row, driver) for driver in (C, RUST)), *tolerance)
        for title, *tolerance in LIMITS.values()
    ]


def rows(measurement):
    """A line per row, then for each limit how many rows are at or below C."""
    every = {row: verdicts(measurement, row) for row in measurement.rows}
    words = {True: "ok", False: "ABOVE", None: "-"}
    groups = {**{title: names(title) for title in COSTS}, "at or\nbelow C": LIMITS}
    header = [
        "row", *(f"{'' if i else title}\n{name}" for title in groups
                 for i, name in enumerate(groups[title])),
    ]
    table = [[
        row, *(text for title in COSTS
               for text in cells(measurement, row, title)), *map(words.get, found),
    ] for row, found in every.items()]
    yield from align(header, table)
    yield ""
    for title, found in zip(LIMITS, zip(*every.values())):
        known = [verdict for verdict in found if verdict is not None]
        if known:
            yield f"{title}: {sum(known)} of {len(known)} rows at or below C"


def reached(measurement):
    """Each goal as it was set, as it is restated, and whether rnull reaches it."""
    table = []
    for title, limit, then, c, here, rust in goals.restated(measurement):
        state = "met" if rust <= here else f"{rust / here:.2f} times"
        figures = (number(value, 2 if then < 10 else 0) for value in (limit, then, c, here, rust))
        table.append([title, *figures, state])
    if table:
        yield ""
        yield from align(["goal", "as set:\nlimit", "of C's", "here:\nC", "limit", RUST, ""], table)


def memory(measurement):
    """The memory figures."""
    for what, text in MEMORY_FIGURES.items():
        c, rust = (measurement.memory.get((what, driver)) for driver in (C, RUST))
        if c is not None or rust is not None:
            verdict = {True: ", ok", False: ", ABOVE", None: ""}[at_or_below(c, rust, 0.01, 0)]
            yield f"{text}: {C} {whole(c)}, {RUST} {whole(rust)}{verdict}"


def compare(old, new, driver, limit=15):
    """The functions whose cost is not what it was in an older measurement, row by row."""
    for row in new.rows:
        a, b = old.get(row, driver), new.get(row, driver)
        if a is None or b is None:
            continue
        own = f"driver + abstraction {old.own(row, driver):,.1f} -> {new.own(row, driver):,.1f}"
        locked = (
            f"locked {old.get(row, driver, 'locked'):.2f} -> {new.get(row, driver, 'locked'):.2f}")
        yield f"{row} ({driver}): all {a:,.0f} -> {b:,.0f}, {own}, {locked}"
        before, after = old.symbols(row, driver), new.symbols(row, driver)
        changed = []
        for key in before.keys() | after.keys():
            was, now = before.get(key, 0), after.get(key, 0)
            if abs(now - was) >= max(LEAST_CHANGE, 0.002 * max(was, now)):
                changed.append((now - was, was, now, *key))
        changed.sort(key=lambda change: -abs(change[0]))
        for difference, was, now, kind, symbol in changed[:limit]:
            yield f"    {difference:+10,.1f}  {was:10,.1f} -> {now:<10,.1f} {kind:16} {symbol}"
        if len(changed) > limit:
            yield f"    ... and {len(changed) - limit} smaller ones"


def functions(measurement, row, limit=40):
    """The functions of a row, all drivers side by side, the most expensive first."""
    found = [measurement.symbols(row, driver) for driver in (C, RUST, REFERENCE)]
    costs = {key: [column.get(key, 0) for column in found] for column in found for key in column}
    yield f"{row}: instructions per I/O"
    yield "".join(f"{driver:>12}" for driver in (C, RUST, REFERENCE))
    for key in sorted(sorted(costs), key=lambda key: -max(costs[key]))[:limit]:
        yield "".join(f"{cost:12,.1f}" for cost in costs[key]) + f"  {key[0]:16} {key[1]}"


def published_counts(measurement):
    """The rows as the documentation shows them."""
    shown = {
        "driver": (OWN, 0), "lock, tree, timer": (SYNC_TITLE, 0), "all but copies": (ALL, 0),
        "locked": (LOCKED, 1),
    }
    columns = [(name, cost, digits, driver) for name, (cost, digits) in shown.items()
               for driver in (RUST, C)]
    columns.append(("all but copies", ALL, 0, REFERENCE))
    yield ["Row", *(f"{name}: {driver}" for name, _, _, driver in columns)]
    for row in measurement.rows:
        yield [
            row, *(number(COSTS[cost](measurement, row, driver), digits)
                   for _, cost, digits, driver in columns),
        ]


def published_goals(measurement):
    """The goals as the documentation shows them."""
    yield ["What", f"set beside {C}'s", f"{C} here", "budget here", RUST]
    for title, limit, then, *here in goals.restated(measurement):
        figures = (number(value, 2 if then < 10 else 0) for value in here)
        yield [title, f"{limit:g} of {then:g}", *figures]


def published_memory(measurement):
    """The memory figures as the documentation shows them."""
    yield ["What", RUST, C]
    for what, title in MEMORY_FIGURES.items():
        costs = (measurement.memory.get((what, driver)) for driver in (RUST, C))
        yield [title[0].upper() + title[1:], *map(whole, costs)]
