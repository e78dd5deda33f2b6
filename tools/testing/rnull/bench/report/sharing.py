# SPDX-License-Identifier: GPL-2.0
"""Which cache lines a driver writes from more than one CPU."""

import re
from collections import Counter, defaultdict

from classes import ABSTRACTION, DRIVER, class_of

# Functions that write to a lock for their caller.
LOCK = re.compile(r"_?_?_?raw_(spin|read|write)_|queued_spin|(down|up)_(read|write)|mutex_|__lock_text_start|refcount_")


def is_own(symbol):
    """Whether a function belongs to driver or abstraction."""
    return class_of(symbol) in (DRIVER, ABSTRACTION)


def writer(table, address, call):
    """The function of driver or abstraction that made a write, by itself or through a lock function, or None."""
    symbol, caller = table.at(address), table.at(call)
    if is_own(symbol):
        return symbol.readable
    if LOCK.match(symbol.name) and is_own(caller):
        return f"{caller.readable} by {symbol.name}"
    return None


def written_lines(region, table):
    """Cache line -> (mask of vCPUs, names of who wrote it), of what driver or abstraction wrote."""
    vcpus, writers = Counter(), defaultdict(set)
    for address, call, line, mask in region.writes:
        name = writer(table, address, call)
        if name:
            vcpus[line] |= mask
            writers[line].add(name)
    return {line: (mask, frozenset(writers[line])) for line, mask in vcpus.items()}


def shared_lines(region, table):
    """The names of who wrote, for each cache line that was written from several vCPUs."""
    return [names for mask, names in written_lines(region, table).values() if mask & (mask - 1)]


def lines(region, table):
    """For people."""
    found = shared_lines(region, table)
    every = len(written_lines(region, table))
    yield f"{region.row}: {region.driver} writes {len(found)} of its {every} cache lines from more than one CPU"
    for names, count in Counter(found).most_common():
        yield f"    {count:6} by {', '.join(sorted(names))}"
