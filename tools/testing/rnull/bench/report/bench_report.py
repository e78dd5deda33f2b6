#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns what the guests left behind into a table, a CSV file, a chart, a comparison."""

import argparse
import csv
import sys

import budget
import chart
import compare
import goals
import publish
import sharing
import table
import trust
from counts import read_boot
from measurement import HEADER, Measurement, lines_of
from symbols import SymbolTable


def collect(arguments):
    """The CSV file from the boots; what went wrong in them."""
    boots, wrong = [], []
    for directory in [*arguments.boot, *arguments.sharing]:
        boot = read_boot(f"{directory}/output", f"{directory}/counts")
        wrong += [f"{directory}: {failure}" for failure in boot.failures]
        text = next((address for address, name, module in boot.symbols if name == "_text" and not module), None)
        if text != SymbolTable(arguments.map, []).text:
            wrong.append(f"{directory}: the guest's kernel is not where {arguments.map} says")
        boots.append(boot)
    counted, recorded = boots[: len(arguments.boot)], boots[len(arguments.boot) :]
    with open(arguments.csv, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(lines_of(counted, arguments.map))
        for boot in recorded:
            symbols = SymbolTable(arguments.map, boot.symbols)
            for region in boot.regions:
                writer.writerows(sharing.csv_lines(region, symbols))
    return wrong


def top(measurement, row, drivers, limit=40):
    """The functions of a row side by side, the most expensive first."""
    columns = [measurement.symbols(row, driver) for driver in drivers]
    keys = sorted({key for column in columns for key in column}, key=lambda key: -max(c.get(key, 0) for c in columns))
    yield f"{row}: instructions per I/O"
    yield "".join(f"{driver:>12}" for driver in drivers)
    for key in keys[:limit]:
        yield "".join(f"{column.get(key, 0):12,.1f}" for column in columns) + f"  {key[0]:16} {key[1]}"


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boot", action="append", default=[], help="directory with output and counts of a boot")
    parser.add_argument("--map", help="System.map of the kernel that was booted")
    parser.add_argument("--csv", help="the measurement: written if boots are given, else read")
    parser.add_argument("--chart", help="SVG file to write")
    parser.add_argument("--budget", help="check rnull against this file, and print nothing else")
    parser.add_argument("--write-budget", help="lower the numbers in such a file, or write it")
    parser.add_argument("--because", default="", help="why --write-budget may raise numbers, too")
    parser.add_argument("--compare", metavar="OLD.csv", help="show what changed since an older measurement")
    parser.add_argument("--publish", metavar="DIR", help="write chart and tables there, if they can be trusted")
    parser.add_argument("--driver", default="rnull", help="whose changes are shown (default: rnull)")
    parser.add_argument("--sharing", action="append", default=[], help="directory of a boot that recorded all stores")
    parser.add_argument("--symbols", metavar="ROW", help="show the functions of a row")
    return parser.parse_args()


def report(measurement, arguments):
    """What people are shown, as lines."""
    if measurement.runs:
        yield from table.of_rows(measurement)
        yield ""
        yield from table.of_bars(measurement)
        yield from goals.lines(measurement)
        yield ""
    yield from table.of_memory(measurement)
    yield from sharing.lines(measurement)
    if arguments.compare:
        yield from compare.lines(Measurement(arguments.compare), measurement, arguments.driver)


def guard(measurement, arguments, wrong):
    """The lines of a test suite; the exit status."""
    lines = [*budget.check(measurement, budget.read(arguments.budget)), *sharing.check(measurement)]
    lines += [f"not ok bench - {failure}" for failure in wrong]
    print("\n".join(lines))
    return 1 if any(line.startswith("not") for line in lines) else 0


def main():
    """The exit status: 1 if the measurement is not to be trusted."""
    arguments = parse()
    wrong = collect(arguments) if arguments.boot or arguments.sharing else []
    measurement = Measurement(arguments.csv)
    if arguments.symbols:
        print("\n".join(top(measurement, arguments.symbols, (table.C, table.RUST, table.REFERENCE))))
        return 0
    if arguments.budget:
        return guard(measurement, arguments, wrong)
    if arguments.write_budget:
        refused = budget.write(arguments.write_budget, measurement, arguments.because)
        wrong += [f"the budget is left as it was, since it would rise without a reason: {what}" for what in refused]
    print("\n".join(report(measurement, arguments)))
    if arguments.chart:
        with open(arguments.chart, "w", encoding="utf-8") as file:
            file.write(chart.svg(measurement))
    worst, doubts = trust.doubts(measurement)
    wrong += [*doubts, *sharing.doubts(measurement)]
    for doubt in wrong:
        print(f"not to be trusted: {doubt}")
    if arguments.publish and not wrong:
        publish.write(arguments.publish, measurement)
    if measurement.runs and not wrong:
        print(f"repeated runs: driver parts equal to the integer, totals within {100 * worst:.2f} %")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
