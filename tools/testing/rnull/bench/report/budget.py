# SPDX-License-Identifier: GPL-2.0
"""What rnull may cost: written from a measurement, checked against a later one."""

import csv

from classes import ABSTRACTION, ALLOCATION, CLASSES, DRIVER, SYNC
from table import RUST

HEADER = ["row", "what", "per I/O"]
OWN, TREE, ALL, LOCKED = "driver and abstraction", "lock tree timer", "all but allocation", "locked operations"
WORTH_A_LINE = 2  # instructions of a function
GROWTH, INSTRUCTIONS, OPERATIONS = 0.02, 3, 0.25  # of these only what is more than the largest counts


def numbers(measurement, row):
    """What is limited -> its number."""
    steady = tuple(name for name in CLASSES if name != ALLOCATION)
    return {
        OWN: measurement.get(row, RUST, "instructions", (DRIVER, ABSTRACTION)),
        TREE: measurement.get(row, RUST, "instructions", (SYNC,)),
        ALL: measurement.get(row, RUST, "instructions", steady),
        LOCKED: measurement.get(row, RUST, "locked"),
    }


def functions(measurement, row):
    """Function -> instructions, of what is in the driver's hand, to name the one that grew."""
    found = {}
    for (kind, symbol), count in measurement.symbols(row, RUST).items():
        if count >= WORTH_A_LINE and kind in (DRIVER, ABSTRACTION, SYNC):
            found[symbol] = found.get(symbol, 0) + count
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def write(path, measurement):
    """The file, of all rows that were measured."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for row in measurement.rows:
            if measurement.get(row, RUST) is None:
                continue
            for what, count in numbers(measurement, row).items():
                writer.writerow([row, what, f"{count:.2f}"])
            for symbol, count in functions(measurement, row).items():
                writer.writerow([row, f"  {symbol}", f"{count:.1f}"])


def read(path):
    """Row -> what or function -> number."""
    budget = {}
    with open(path, encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            budget.setdefault(line["row"], {})[line["what"]] = float(line["per I/O"])
    return budget


def culprits(measurement, row, limits):
    """The functions that grew most, as text."""
    now = functions(measurement, row)
    grown = sorted(((count - limits.get(f"  {name}", 0), name) for name, count in now.items()), reverse=True)
    return ", ".join(f"{name} {difference:+.1f}" for difference, name in grown[:3] if difference > 0.5)


def check(measurement, budget):
    """For each row a line as test suites print it."""
    for row, limits in budget.items():
        if measurement.get(row, RUST) is None:
            yield f"not ok budget {row} - it was not measured"
            continue
        over = []
        for what, count in numbers(measurement, row).items():
            least = OPERATIONS if what == LOCKED else INSTRUCTIONS
            if count > limits[what] + max(GROWTH * limits[what], least):
                over.append(f"{what} {limits[what]:.1f} -> {count:.1f}")
        if over:
            yield f"not ok budget {row} - {'; '.join(over)}: {culprits(measurement, row, limits)}"
        else:
            yield f"ok budget {row}"
