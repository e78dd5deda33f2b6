# SPDX-License-Identifier: GPL-2.0
"""Whether a measurement is repeatable: repeated runs of a row must have come out the same."""

from functions import ABSTRACTION, DRIVER, SYNC
from measurement import SCHEDULED, looks, polls_controller

OWN = (DRIVER, ABSTRACTION)

# What may differ between runs: title, one of COUNTS, classes, a part of it, at least a number.
TOLERANCES = [
    ("instructions of driver and abstraction", "instructions", OWN, 0, 1),
    ("instructions of the kernel", "instructions", None, 0.003, 0),
    ("instructions of locks, trees and timers", "instructions", (SYNC,), 0.02, 3),
    ("locked operations", "locked", None, 0.02, 0.25),
]


def spread(values):
    """The largest less the smallest."""
    return max(values) - min(values)


def unsteady(measurement, runs, what, limit=3):
    """The functions in which runs of the same differ most, as text."""
    found = []
    for key in {key for run in runs for key in measurement.runs[run]}:
        costs = (measurement.runs[run].get(key) for run in runs)
        found.append((spread([cost[what] if cost else 0 for cost in costs]), key[1]))
    return ", ".join(f"{name} by {apart:.1f}"
                     for apart, name in sorted(found, reverse=True)[:limit])


def doubts(measurement):
    """(how far totals of repeated runs were apart at most, what is not repeatable)."""
    worst, found, repeated = 0.0, [], False
    for row, driver in dict.fromkeys((run.row, run.driver) for run in measurement.runs):
        runs = measurement.runs_of(row, driver)
        if len(runs) < 2:
            continue
        repeated = True
        if row not in SCHEDULED and not polls_controller(row):
            totals = [measurement.of_run(run) for run in runs]
            worst = max(worst, spread(totals) / min(totals))
        for title, what, classes, part, least in TOLERANCES:
            if row in SCHEDULED and classes != OWN:
                continue
            if polls_controller(row) and classes != OWN and what != "locked":
                continue
            but = looks if polls_controller(row) and classes == OWN else None
            counts = [measurement.of_run(run, what, classes, but) for run in runs]
            if spread(counts) >= max(part * min(counts), least) > 0:
                differ = unsteady(measurement, runs, what)
                between = f"between {min(counts):.2f} and {max(counts):.2f}"
                found.append(f"{row}: {title} with {driver} are {between} ({differ})")
    if measurement.runs and not repeated:
        found.append("no row was run twice")
    return worst, found
