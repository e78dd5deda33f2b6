# SPDX-License-Identifier: GPL-2.0
"""What rnull shall reach: budgets that were set beside what C cost then, restated for what C costs here."""

import re

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


# From the driver's word that a request is done until its tag is free; what becomes of the bio is the same for everybody.
ENDING = re.compile(
    r"(__)?blk_mq_(end_request|end_request_batch|free_request|put_tags?)$|blk_update_request$|sbitmap_queue_(clear|wake)"
)


def ending(row, count="instructions"):
    """What ending a request costs in the block layer."""

    def cost(m, who):
        found = m.symbols(row, who, count)
        return sum(number for (_, symbol), number in found.items() if ENDING.match(symbol)) if found else None

    return cost


def locked(row):
    """Locked operations that a driver has a say in: its own, the abstraction's, all locks, ending a request."""

    def cost(m, who):
        both = [m.get(row, who, "locked", OWN_AND_TREE), ending(row, "locked")(m, who)]
        return None if None in both else sum(both)

    return cost


NULL, NULL32, DEEP32 = "null/direct/psync", "null/direct/uring32", "null/deep/uring32"
POLL32 = "null/poll/uring32"

# What, the budget as set, C when it was set, how it is measured.
GOALS = [
    ("driver, io_uring batch 32", 75, 112, own(NULL32)),
    ("ending a request, batch 32", 160, 300, ending(NULL32)),
    ("locked, of the whole kernel, batch 32", 2.4, 3.3, lambda m, who: m.get(NULL32, who, "locked")),
    # With the default of 64 tags each is allocated by itself, whoever the driver is. So the same where they come together,
    # and, with the default, what a driver has a say in.
    ("the same with 128 tags", 2.4, 3.3, lambda m, who: m.get(DEEP32, who, "locked")),
    ("locked: driver, lock, ending, batch 32", 1.46, 2.37, locked(NULL32)),
    ("driver when polled, batch 32", 110, 155, own(POLL32)),
    ("what a timer adds, batch 32", 120, 814, more_than("null/timer/uring32", NULL32)),
    ("memory 4k read: driver, tree, lock, batch 32", 300, 460, own_and_tree("mem/bs4096/uring32/read", NULL32)),
    ("memory 4k write: the same", 300, 460, own_and_tree("mem/bs4096/uring32/write", NULL32)),
    ("memory 4k read, bs=512: the same, psync", 350, 1620, own_and_tree("mem/bs512/psync/read", NULL)),
    ("memory 128k read: driver, tree, lock, psync", 2500, 9445, own_and_tree("mem/128k/psync/read")),
    ("memory 128k write: the same", 2500, 9445, own_and_tree("mem/128k/psync/write")),
]


def restated(measurement):
    """(title, budget, C when it was set, C here, budget here, rnull), of what was measured of both."""
    for title, budget, then, cost in GOALS:
        c, rust = cost(measurement, C), cost(measurement, RUST)
        if None not in (c, rust):
            yield title, budget, then, c, c * budget / then, rust


def lines(measurement):
    """A table: each goal as it was set, then restated, then what is."""
    rows = [[["goal"], ["budget", "of C's"], ["C", "budget", "rnull"], [""]]]
    for title, budget, then, c, limit, rust in restated(measurement):
        state = "met" if rust <= limit else f"{rust / limit:.2f} times"
        digits = 2 if then < 10 else 0
        columns = [number(value, digits) for value in (budget, then, c, limit, rust)]
        rows.append([[title], columns[:2], columns[2:], [state]])
    if len(rows) > 1:
        yield ""
        yield from align(rows, ["", "as set", "here", ""])
