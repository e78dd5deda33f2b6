# SPDX-License-Identifier: GPL-2.0
"""What scripts/bench prints, with the files that it writes."""

import csv

import budget
import chart
import repeatability
import sharing
import table
from measurement import RUST, C, Measurement, collect


def lines(measurement, old):
    """The report."""
    if measurement.runs:
        yield from table.rows(measurement)
        yield from table.reached(measurement)
        yield ""
    yield from table.memory(measurement)
    yield from sharing.lines(measurement)
    if old:
        yield from table.compare(Measurement(old), measurement, RUST)


def publish(directory, measurement):
    """The chart and the tables of the documentation."""
    chart.write(directory / "rnull-counts.svg", measurement)
    tables = {
        "rnull-counts.csv": table.published_counts, "rnull-budgets.csv": table.published_goals,
        "rnull-memory.csv": table.published_memory,
    }
    for name, rows in tables.items():
        with open(directory / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows(measurement))


def guard(measurement, path, wrong):
    """The lines of a test suite; returns the exit status."""
    found = [*budget.check(measurement, budget.read(path)), *sharing.check(measurement, RUST)]
    found += [f"not ok sharing - {doubt}" for doubt in sharing.doubts(measurement, C, RUST)]
    found += [f"not ok bench - {failure}" for failure in wrong]
    print("\n".join(found))
    return int(any(line.startswith("not") for line in found))


def main(options, budget_path, documentation):
    """The exit status: 1 if the measurement is not to be trusted."""
    wrong = collect(options.csv, options.report) if options.report != "-" else []
    measurement = Measurement(options.csv)
    if options.symbols:
        print("\n".join(table.functions(measurement, options.symbols)))
        return 0
    if options.guard:
        return guard(measurement, budget_path, wrong)
    if options.write_budget:
        refused = budget.write(budget_path, measurement, options.because)
        wrong += [
            f"the budget stays, since it would rise without a reason: {what}" for what in refused
        ]
    print("\n".join(lines(measurement, options.compare)))
    if options.report != "-" and {C, RUST} <= {run.driver for run in measurement.runs}:
        chart.write(options.csv.replace("counts.csv", "chart.svg"), measurement)
    worst, doubts = repeatability.doubts(measurement)
    wrong += [*doubts, *sharing.doubts(measurement, C, RUST)]
    for doubt in wrong:
        print(f"not to be trusted: {doubt}")
    if options.publish and not wrong:
        publish(documentation, measurement)
    if measurement.runs and not wrong:
        print(
            f"repeated runs: driver parts equal to the integer, totals within {100 * worst:.2f} %")
    return int(bool(wrong))
