# SPDX-License-Identifier: GPL-2.0
"""Whether a measurement can be believed: what was run several times must have come out the same."""

from classes import ABSTRACTION, ALLOCATION, CLASSES, DRIVER

OWN_MAY_DIFFER = 1  # instruction per I/O, of driver and abstraction
ALL_MAY_DIFFER = 0.003  # of the kernel's instructions, without allocation: that depends on which pages are free by chance
STEADY = tuple(name for name in CLASSES if name != ALLOCATION)


def spread(values):
    """The largest less the smallest."""
    return max(values) - min(values)


def doubts(measurement):
    """(how far the totals of repeated runs were apart at most, sentences about what is not to be believed)."""
    worst, found, repeated = 0.0, [], False
    for row, driver in dict.fromkeys((run.row, run.driver) for run in measurement.runs):
        runs = measurement.runs_of(row, driver)
        if len(runs) < 2:
            continue
        repeated = True
        own = [measurement.of_run(run, "instructions", (DRIVER, ABSTRACTION)) for run in runs]
        if spread(own) >= OWN_MAY_DIFFER:
            found.append(f"{row}: the driver part of {driver} is between {min(own):.2f} and {max(own):.2f}")
        everything = [measurement.of_run(run, "instructions", STEADY) for run in runs]
        apart = spread(everything) / min(everything)
        worst = max(worst, apart)
        if apart > ALL_MAY_DIFFER:
            found.append(f"{row}: the kernel's instructions with {driver} are {100 * apart:.2f} % apart")
    if not repeated:
        found.append("nothing was run twice")
    return worst, found
