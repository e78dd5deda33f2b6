# SPDX-License-Identifier: GPL-2.0
"""Which cache lines a driver writes from more than one CPU."""

import re
from collections import Counter, defaultdict

from classes import ABSTRACTION, DRIVER, class_of
from measurement import SHARING
from table import C, RUST

WRITTEN = "all"  # stands for the writers of all lines

# Functions that write to a lock for their caller.
LOCK = re.compile(r"_?_?_?raw_(spin|read|write)_|queued_spin|(down|up)_(read|write)|mutex_|__lock_text_start|refcount_")

# What counts who has the disk open. A job closes it when it ends, which may be before the other job has ended.
OPENER = re.compile(r"\bgendisk::operations::(open|release)$")


def is_own(symbol):
    """Whether a function belongs to driver or abstraction, and is part of I/O."""
    return class_of(symbol) in (DRIVER, ABSTRACTION) and not OPENER.search(symbol.readable)


def writer(table, address, call):
    """The function of driver or abstraction that made a write, by itself or through a lock function, or None."""
    symbol, caller = table.at(address), table.at(call)
    if is_own(symbol):
        return symbol.readable
    if LOCK.match(symbol.name) and is_own(caller):
        return f"{caller.readable}:{symbol.name}"
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


def csv_lines(region, table):
    """Lines of the measurement's CSV: how many cache lines each group of functions wrote from several vCPUs."""
    written = written_lines(region, table)
    shared = Counter(" ".join(sorted(names)) for mask, names in written.values() if mask & (mask - 1))
    for who, count in [(WRITTEN, len(written)), *shared.most_common()]:
        yield [SHARING, region.driver, 0, 0, 1, 0, region.row, who, count, 0, 0, 0, 0]


def shared_lines(measurement, what, driver):
    """Who wrote -> how many cache lines that several vCPUs wrote."""
    return {who: count for who, count in measurement.sharing[what, driver].items() if who != WRITTEN}


def lines(measurement):
    """For people."""
    for what, driver in measurement.sharing:
        shared = shared_lines(measurement, what, driver)
        written = measurement.sharing[what, driver][WRITTEN]
        yield f"{what}: {driver} writes {sum(shared.values())} of its {written} cache lines from both CPUs"
        for who, count in shared.items():
            yield f"    {count} by {who}"


def check(measurement):
    """For each workload a line as test suites print it."""
    for what, driver in measurement.sharing:
        shared = shared_lines(measurement, what, driver)
        if driver == RUST and shared:
            writers = "; ".join(shared)
            yield f"not ok sharing {what} - {sum(shared.values())} cache lines are written from both CPUs: {writers}"
        elif driver == RUST:
            yield f"ok sharing {what}"
    yield from (f"not ok sharing - {doubt}" for doubt in doubts(measurement))


def doubts(measurement):
    """Why the sharing is not to be believed: what is known to share must be seen to."""
    for what, driver in measurement.sharing:
        if not measurement.sharing[what, driver][WRITTEN]:
            yield f"{what}: no store of {driver} was recorded"
        elif driver == C and not shared_lines(measurement, what, driver):
            yield f"{what}: the lock that {driver} takes on both CPUs was not seen to be shared"
