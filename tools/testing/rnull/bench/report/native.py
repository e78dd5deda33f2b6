#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Times of null_blk beside rnull, with null_blk beside itself, in boots of User Mode Linux.

A cycle runs each pair of devices of each row once, as A B B A or as B A A B, in an order that the
seed decides. Its result is the logarithm of the time of B over that of A; a boot's is the median of
its cycles, and the interval is over boots.
"""

import argparse
import random
from collections import defaultdict
from math import exp, log
from pathlib import Path
from statistics import mean, median

from scipy import stats

ROWS = Path(__file__).parents[1] / "native/rows"
PAIRS = {"rnull": "r", "control": "b"}  # what is compared with the device a: title -> device
DRIVERS = {"a": "null_blk", "b": "null_blk", "r": "rnull"}
FEWEST_BOOTS = 4  # that found the machine quiet, for a verdict


def legs(seed, cycles):
    """The legs of a boot: number | row | device | driver | attributes | arguments."""
    choose = random.Random(seed)
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.split("|")] for line in lines
             if "|" in line and line[0] != "#"]
    for cycle in range(cycles):
        parts = [(index, title) for index in range(len(table)) for title in PAIRS]
        choose.shuffle(parts)
        for index, title in parts:
            name, attributes, arguments = table[index]
            for place, side in enumerate(choose.choice(["abba", "baab"])):
                kind = "a" if side == "a" else PAIRS[title]
                leg = [
                    f"{cycle}-{title}-{place}", name, f"{kind}{index}", DRIVERS[kind], attributes,
                    arguments,
                ]
                yield " | ".join(leg)


def read_boot(directory):
    """((row, pair) -> the boot's result, row -> ns per I/O of the device a, what went wrong)."""
    times, alone, wrong = defaultdict(lambda: defaultdict(lambda: [0, 0])), defaultdict(list), []
    lines = (directory / "times").read_text(encoding="utf-8").splitlines()
    for line in lines:
        match line.split():
            case ["leg", number, row, device, ios, ns]:
                cycle, title, _ = number.split("-")
                times[row, title][cycle][device[0] != "a"] += int(ns)
                if device[0] == "a":
                    alone[row].append(int(ns) / int(ios))
            case ["done"]:
                pass
            case _:
                wrong.append(f"{directory.name}: {line}")
    if "done" not in lines:
        wrong.append(f"{directory.name}: the guest did not come to its end")
    if wrong:
        return {}, {}, wrong
    results = {key: median(log(b / a) for a, b in cycles.values()) for key, cycles in times.items()}
    return results, {row: median(values) for row, values in alone.items()}, []


def interval(values):
    """The 95 % confidence interval of the mean, by Student's t distribution."""
    return stats.t.interval(0.95, len(values) - 1, loc=mean(values), scale=stats.sem(values))


def verdict(rnull, control):
    """What the two intervals, as (low, high), say."""
    if control[0] > 0 or control[1] < 0:
        return "null_blk differs from itself: says nothing"
    if rnull[0] <= 0 <= rnull[1]:
        return "no difference found"
    return "rnull is faster" if rnull[1] < 0 else "rnull is slower"


def table(results, alone):
    """A line for each row."""
    yield f"{'row':26} {'null_blk':>10}   {'rnull against it':28} {'null_blk against itself':28}"
    for row in sorted({row for row, _ in results[0]}):
        line = f"{row:26} {median(times[row] for times in alone) / 1000:7.2f} us   "
        bounds = []
        for title in PAIRS:
            values = [result[row, title] for result in results]
            bounds.append(interval(values))
            low, centre, high = (100 * (exp(value) - 1)
                                 for value in (bounds[-1][0], mean(values), bounds[-1][1]))
            line += f"{f'{centre:+.1f} % ({low:+.1f} .. {high:+.1f})':28} "
        yield line + verdict(*bounds)


def report(directories):
    """Every boot that was started, then the table of those that found the machine quiet."""
    results, alone, wrong = [], [], []
    for directory in map(Path, directories):
        state = (directory / "boot").read_text(encoding="utf-8").strip()
        result, times, failures = read_boot(directory)
        wrong += failures
        yield f"{directory.name}: {state}{'; FAILED' if failures else ''}"
        if state.endswith("quiet") and not failures:
            results.append(result)
            alone.append(times)
    yield from wrong
    yield (
        f"{len(results)} of {len(directories)} boots count, by the load before and after them, "
        "not by their times")
    if len(results) < FEWEST_BOOTS:
        yield f"no verdict: {FEWEST_BOOTS} boots at least must find the machine quiet"
        return
    yield "difference in time to null_blk in per cent, with the 95 % interval over boots"
    yield from table(results, alone)


def main():
    """Prints lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    order = commands.add_parser("legs",
                                help="the legs of a boot, in the format that native/in-uml reads")
    order.add_argument("--seed", type=int, required=True)
    order.add_argument("--cycles", type=int, required=True)
    found = commands.add_parser("report", help="the table, from directories with times and boot")
    found.add_argument("boots", nargs="+")
    options = parser.parse_args()
    lines = (legs(options.seed, options.cycles)
             if options.command == "legs" else report(options.boots))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
