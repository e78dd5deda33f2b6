# SPDX-License-Identifier: GPL-2.0
"""Which cache lines a driver writes from more than one CPU."""

import re
from collections import Counter, defaultdict

from functions import ABSTRACTION, DRIVER, class_of

# The row in the CSV: class is the workload, symbol the writers, instructions the number of lines.
SHARING = "sharing"
WRITTEN = "all"  # the writers of all lines

# Functions that write to a lock for their caller.
LOCK = re.compile(
    r"_?_?_?raw_(spin|read|write)_|queued_spin|(down|up)_(read|write)|mutex_|__lock_text_start|"
    r"refcount_")

# They count the openers of a disk. A job may close the disk before the other job has ended.
OPENER = re.compile(r"\bgendisk::operations::(open|release)$")


def is_own(symbol):
    """Whether a function belongs to driver or abstraction, and is part of I/O."""
    return class_of(symbol) in (DRIVER, ABSTRACTION) and not OPENER.search(symbol.readable)


def writer(table, address, call):
    """The function of driver or abstraction that wrote, itself or by a lock function, or None."""
    symbol, caller = table.at(address), table.at(call)
    if is_own(symbol):
        return symbol.readable
    if LOCK.match(symbol.name) and is_own(caller):
        return f"{caller.readable}:{symbol.name}"
    return None


def csv_lines(region, table):
    """Lines of the CSV: how many cache lines each group of functions wrote from several vCPUs."""
    vcpus, writers = Counter(), defaultdict(set)
    for address, call, line, mask in region.writes:
        name = writer(table, address, call)
        if name:
            vcpus[line] |= mask
            writers[line].add(name)
    shared = Counter(" ".join(sorted(writers[line])) for line, mask in vcpus.items()
                     if mask & (mask - 1))
    for names, count in [(WRITTEN, len(vcpus)), *shared.most_common()]:
        yield [SHARING, region.driver, 0, 0, 1, 0, region.row, names, count, 0, 0, 0, 0]


def shared_lines(measurement):
    """(workload, driver, lines written, writers -> lines that several vCPUs wrote)."""
    for (what, driver), counts in measurement.sharing.items():
        yield what, driver, counts[WRITTEN], {
            name: n
            for name, n in counts.items() if name != WRITTEN
        }


def lines(measurement):
    """For the report."""
    for what, driver, written, shared in shared_lines(measurement):
        count = sum(shared.values())
        yield f"{what}: {driver} writes {count} of its {written} cache lines from both CPUs"
        yield from (f"    {count} by {names}" for names, count in shared.items())


def check(measurement, driver):
    """A test suite's line for each workload of the driver, which must not share."""
    for what, found, _, shared in shared_lines(measurement):
        if found == driver and shared:
            count, names = sum(shared.values()), "; ".join(shared)
            yield f"not ok sharing {what} - {count} cache lines are written from both CPUs: {names}"
        elif found == driver:
            yield f"ok sharing {what}"


def doubts(measurement, *drivers):
    """Reasons to reject the recording: the first driver shares, and must be seen to share."""
    shown = {(what, driver): found for what, driver, *found in shared_lines(measurement)}
    workloads = dict.fromkeys(what for what, _ in shown)
    for what, driver in ((what, driver) for what in workloads for driver in drivers):
        written, shared = shown.get((what, driver), (0, {}))
        if not written:
            yield f"{what}: no store of {driver} was recorded"
        elif driver == drivers[0] and not shared:
            yield f"{what}: the lock that {driver} takes on both CPUs was not seen to be shared"
