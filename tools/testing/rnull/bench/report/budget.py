# SPDX-License-Identifier: GPL-2.0
"""What rnull and rnvme may cost: lowered by any measurement, raised only with a reason."""

import csv
import os

from functions import ABSTRACTION, DRIVER, SYNC
from measurement import MEMORY, RUST, SCHEDULED, looks, polls_controller

HEADER = ["row", "what", "per I/O", "raised because"]
OWN, TREE, ALL, LOCKED = "driver and abstraction", "lock tree timer", "all", "locked operations"
BUT_LOOKS = "driver and abstraction without poll"
WORTH_A_LINE = 2  # instructions of a function
GROWTH, INSTRUCTIONS, OPERATIONS = 0.02, 3, 0.25  # of share and number, only what is more than both


def numbers(measurement, row):
    """What is limited -> its number."""
    if row == MEMORY:
        return {what: size for (what, driver), size in measurement.memory.items() if driver == RUST}
    if row in SCHEDULED:
        return {OWN: measurement.own(row, RUST)}
    if polls_controller(row):
        return {
            BUT_LOOKS: measurement.own_but_looks(row, RUST),
            LOCKED: measurement.get(row, RUST, "locked"),
        }
    return {
        OWN: measurement.own(row, RUST), TREE: measurement.get(row, RUST, "instructions", (SYNC,)),
        ALL: measurement.get(row, RUST), LOCKED: measurement.get(row, RUST, "locked"),
    }


def too_much(what, count, limit):
    """Whether a number has grown by more than runs of the same may differ."""
    return count > limit + max(GROWTH * limit, OPERATIONS if what == LOCKED else INSTRUCTIONS)


def functions(measurement, row):
    """Function -> instructions, of driver, abstraction and locks, to name what grew."""
    found = {}
    for (kind, symbol), count in measurement.symbols(row, RUST).items():
        if polls_controller(row) and looks(symbol):
            continue
        if count >= WORTH_A_LINE and kind in (DRIVER, ABSTRACTION, SYNC):
            found[symbol] = found.get(symbol, 0) + count
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def measured(measurement):
    """The rows that the driver did."""
    rows = [row for row in measurement.rows if measurement.own(row, RUST) is not None]
    return [*rows, MEMORY] if numbers(measurement, MEMORY) else rows


def lowered(old, measurement, reason):
    """(The budget after a measurement, sentences about what it may not raise)."""
    new, refused = dict(old), []
    for row in measured(measurement):
        limits = old.get(row, {})
        new[row] = {}
        for what, count in numbers(measurement, row).items():
            limit, why = limits.get(what, (count, ""))
            if too_much(what, count, limit):
                refused += [] if reason else [f"{row}: {what} {limit:.1f} -> {count:.1f}"]
                new[row][what] = count, reason
            else:
                new[row][what] = (count, "") if count < limit else (limit, why)
        new[row].update(
            {f"  {symbol}": (count, "")
             for symbol, count in functions(measurement, row).items()})
    return new, refused


def write(path, measurement, reason):
    """Brings the file in line with a measurement; returns why not, as sentences."""
    new, refused = lowered(read(path) if os.path.exists(path) else {}, measurement, reason)
    if refused:
        return refused
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for row, limits in new.items():
            for what, (count, why) in limits.items():
                writer.writerow(
                    [row, what, f"{count:.1f}" if what.startswith(" ") else f"{count:.2f}", why])
    return []


def read(path):
    """Row -> what or function -> (number, why it was raised)."""
    budget = {}
    with open(path, encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            budget.setdefault(line["row"],
                              {})[line["what"]] = (float(line["per I/O"]), line["raised because"])
    return budget


def culprits(measurement, row, limits):
    """The functions that grew most, as text."""
    now = functions(measurement, row)
    grown = sorted(
        ((count - limits.get(f"  {name}", (0, ""))[0], name) for name, count in now.items()),
        reverse=True)
    found = ", ".join(f"{name} {difference:+.1f}" for difference, name in grown[:3]
                      if difference > 0.5)
    return (found or
            "no function of driver, abstraction or locks; scripts/bench --compare shows the others")


def check(measurement, budget):
    """For each row a line as of a test suite."""
    now = measured(measurement)
    for row in dict.fromkeys([*budget, *now]):
        limits = budget.get(row)
        if not limits or row not in now:
            why = "was not measured" if limits else "has no budget; --write-budget makes one"
            yield f"not ok budget {row} - it {why}"
            continue
        found = numbers(measurement, row)
        missing = [what for what in found if what not in limits]
        if missing:
            yield f"not ok budget {row} - no budget for {', '.join(missing)}; --write-budget makes one"
            continue
        absent = [what for what in limits if not what.startswith(" ") and what not in found]
        if absent:
            yield f"not ok budget {row} - {', '.join(absent)}: not measured"
            continue
        over = [
            f"{what} {limits[what][0]:.1f} -> {count:.1f}"
            for what, count in found.items()
            if too_much(what, count, limits[what][0])
        ]
        if over:
            yield f"not ok budget {row} - {'; '.join(over)}: {culprits(measurement, row, limits)}"
        else:
            yield f"ok budget {row}"
