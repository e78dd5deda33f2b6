# SPDX-License-Identifier: GPL-2.0
"""Whether a measurement can be believed: what was run several times must have come out the same."""

from classes import ABSTRACTION, DRIVER, SYNC

OWN_MAY_DIFFER = 1  # instruction per I/O, of driver and abstraction
ALL_MAY_DIFFER = 0.003  # of the kernel's instructions
# What is a small part of all, but looked at by itself: how much of it, and at least how much.
PARTS_MAY_DIFFER = [
    ("instructions of locks, trees and timers", "instructions", (SYNC,), 0.02, 3),
    ("locked operations", "locked", None, 0.02, 0.25),
]


def spread(values):
    """The largest less the smallest."""
    return max(values) - min(values)


def wavering(measurement, runs, what="instructions", limit=3):
    """The functions in which runs of the same differ most, as text."""
    found = []
    for key in {key for run in runs for key in measurement.runs[run]}:
        counts = [getattr(measurement.runs[run][key], what) if key in measurement.runs[run] else 0 for run in runs]
        found.append((spread(counts), key[1]))
    return ", ".join(f"{name} by {apart:.1f}" for apart, name in sorted(found, reverse=True)[:limit])


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
            differ = wavering(measurement, runs)
            found.append(f"{row}: the driver part of {driver} is between {min(own):.2f} and {max(own):.2f} ({differ})")
        everything = [measurement.of_run(run) for run in runs]
        apart = spread(everything) / min(everything)
        worst = max(worst, apart)
        if apart > ALL_MAY_DIFFER:
            differ = wavering(measurement, runs)
            found.append(f"{row}: the kernel's instructions with {driver} are {100 * apart:.2f} % apart ({differ})")
        for title, what, classes, share, least in PARTS_MAY_DIFFER:
            counts = [measurement.of_run(run, what, classes) for run in runs]
            if spread(counts) > max(share * min(counts), least):
                differ = wavering(measurement, runs, what)
                found.append(f"{row}: {title} of {driver} are between {min(counts):.1f} and {max(counts):.1f} ({differ})")
    if measurement.runs and not repeated:
        found.append("nothing was run twice")
    return worst, found
