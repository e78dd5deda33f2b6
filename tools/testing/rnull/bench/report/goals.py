# SPDX-License-Identifier: GPL-2.0
"""What rnull shall reach: budgets that were set beside what C cost then, restated for what C costs here."""

from classes import ABSTRACTION, DRIVER, SYNC
from table import C, RUST, align, number

OWN_AND_TREE = (DRIVER, ABSTRACTION, SYNC)


def own(row):
    """Driver and abstraction."""
    return lambda m, who: m.own(row, who)


def own_and_tree(row, beside=None):
    """The same with trees, locks, timers; less what a null device needs of these anyway, if one is named."""

    def cost(m, who):
        whole = m.get(row, who, "instructions", OWN_AND_TREE)
        spent = m.get(beside, who, "instructions", (SYNC,)) if beside else 0
        return None if None in (whole, spent) else whole - spent

    return cost


def more_than(row, base):
    """What a row costs more than another, of all that."""

    def cost(m, who):
        both = [m.get(name, who, "instructions", OWN_AND_TREE) for name in (row, base)]
        return None if None in both else both[0] - both[1]

    return cost


NULL, NULL32 = "null/direct/psync", "null/direct/uring32"

# What, the budget as set, C when it was set, how it is measured.
GOALS = [
    ("driver, io_uring batch 32", 75, 112, own(NULL32)),
    ("what a timer adds, batch 32", 120, 814, more_than("null/timer/uring32", NULL32)),
    ("memory 4k read: driver, tree, lock, batch 32", 300, 460, own_and_tree("mem/bs4096/uring32/read", NULL32)),
    ("memory 4k write: the same", 300, 460, own_and_tree("mem/bs4096/uring32/write", NULL32)),
    ("memory 4k read, bs=512: the same, psync", 350, 1620, own_and_tree("mem/bs512/psync/read", NULL)),
    ("memory 128k read: driver, tree, lock, psync", 2500, 9445, own_and_tree("mem/128k/psync/read")),
    ("memory 128k write: the same", 2500, 9445, own_and_tree("mem/128k/psync/write")),
]


def lines(measurement):
    """A table: each goal as it was set, then restated, then what is."""
    rows = [[["goal"], ["budget", "of C's"], ["C", "budget", "rnull"], [""]]]
    for title, budget, then, cost in GOALS:
        c, rust = cost(measurement, C), cost(measurement, RUST)
        if c is None or rust is None:
            continue
        restated = c * budget / then
        state = "met" if rust <= restated else f"{rust / restated:.2f} times"
        rows.append([[title], [number(budget), number(then)], [number(c), number(restated), number(rust)], [state]])
    if len(rows) > 1:
        yield ""
        yield from align(rows, ["", "as set", "here", ""])
