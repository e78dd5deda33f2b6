# SPDX-License-Identifier: GPL-2.0
"""The goals of rnull: limits set beside what C cost then, restated for what C costs here."""

import re

from functions import ABSTRACTION, DRIVER, SYNC
from measurement import RUST, C

OWN_AND_TREE = (DRIVER, ABSTRACTION, SYNC)

# From the driver's completion of a request until its tag is free, without what the bio costs.
ENDING = re.compile(
    r"(__)?blk_mq_(end_request|end_request_batch|free_request|put_tags?)$|blk_update_request$|"
    r"sbitmap_queue_(clear|wake)")


def own(m, driver, row):
    """Driver and abstraction."""
    return m.own(row, driver)


def own_and_tree(m, driver, row, base=None):
    """The same with trees, locks, timers; less those of a null device's row, if it is named."""
    whole = m.get(row, driver, "instructions", OWN_AND_TREE)
    spent = m.get(base, driver, "instructions", (SYNC,)) if base else 0
    return None if None in (whole, spent) else whole - spent


def more_than(m, driver, row, base):
    """What a row costs more than another, of all that."""
    both = [m.get(name, driver, "instructions", OWN_AND_TREE) for name in (row, base)]
    return None if None in both else both[0] - both[1]


def ending(m, driver, row, count="instructions"):
    """What ending a request costs in the block layer."""
    found = m.symbols(row, driver, count)
    return sum(cost for (_, name), cost in found.items() if ENDING.match(name)) if found else None


def all_locked(m, driver, row):
    """Locked operations of the whole kernel."""
    return m.get(row, driver, "locked")


def locked(m, driver, row):
    """Those that a driver can influence: its own, the abstraction's, locks, ending a request."""
    both = [m.get(row, driver, "locked", OWN_AND_TREE), ending(m, driver, row, "locked")]
    return None if None in both else sum(both)


NULL, NULL32, DEEP32 = "null/direct/psync", "null/direct/uring32", "null/deep/uring32"
POLL32, READ128 = "null/poll/uring32", "mem/128k/psync/read"

# What, the limit as set, C when it was set, how it is measured.
GOALS = [
    ("driver, io_uring batch 32", 75, 112, own, NULL32),
    ("ending a request, batch 32", 160, 300, ending, NULL32),
    ("locked, of the whole kernel, batch 32", 2.4, 3.3, all_locked, NULL32),
    # Of the default of 64 tags each is allocated by itself, whatever the driver does. So the same
    # where a batch of them is allocated, and, with the default, what a driver can influence.
    ("the same with 128 tags", 2.4, 3.3, all_locked, DEEP32),
    ("locked: driver, lock, ending, batch 32", 1.46, 2.37, locked, NULL32),
    ("driver when polled, batch 32", 110, 155, own, POLL32),
    ("what a timer adds, batch 32", 120, 814, more_than, "null/timer/uring32", NULL32),
    ("memory 4k read: driver, tree, lock, batch 32", 300, 460, own_and_tree,
     "mem/bs4096/uring32/read", NULL32),
    ("memory 4k write: the same", 300, 460, own_and_tree, "mem/bs4096/uring32/write", NULL32),
    ("memory 4k read, bs=512: the same, psync", 350, 1620, own_and_tree, "mem/bs512/psync/read",
     NULL),
    ("memory 128k read: driver, tree, lock, psync", 2500, 9445, own_and_tree, READ128),
    ("memory 128k write: the same", 2500, 9445, own_and_tree, "mem/128k/psync/write"),
]


def restated(measurement):
    """(title, limit, C when it was set, C here, limit here, rnull), if both were measured."""
    for title, limit, then, cost, *rows in GOALS:
        c, rust = (cost(measurement, driver, *rows) for driver in (C, RUST))
        if None not in (c, rust):
            yield title, limit, then, c, c * limit / then, rust
