#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Times of null_blk beside rnull from several boots of User Mode Linux, with null_blk beside itself for control.

usage: native.py legs ROWS SEED CYCLES	the legs of a boot, in the format that native/in-uml reads
       native.py report BOOT...		the table, from directories with times and boot

A cycle runs each pair of devices of each row once, as A B B A or as B A A B, in an order that the seed decides. Its result
is the logarithm of the time of B over that of A; a boot's is the median of its cycles, and the interval is over boots.
"""
import random
import sys
from collections import defaultdict
from math import exp, log
from pathlib import Path
from statistics import median

from student import interval

PAIRS = {"rnull": "r", "control": "b"}  # what is compared with the device a: title -> who
DRIVERS = {"a": "null_blk", "b": "null_blk", "r": "rnull"}
FEWEST_BOOTS = 4  # that the gate let through, for a verdict


def legs(rows, seed, cycles):
    """The legs of a boot: number | row | device | driver | attributes | arguments."""
    choose = random.Random(seed)
    with open(rows, encoding="utf-8") as file:
        table = [[cell.strip() for cell in line.split("|")] for line in file if "|" in line and line[0] != "#"]
    for cycle in range(cycles):
        parts = [(index, title) for index in range(len(table)) for title in PAIRS]
        choose.shuffle(parts)
        for index, title in parts:
            name, attributes, arguments = table[index]
            order = choose.choice(["abba", "baab"])
            for place, side in enumerate(order):
                who = "a" if side == "a" else PAIRS[title]
                number = f"{cycle}-{title}-{place}"
                yield f"{number} | {name} | {who}{index} | {DRIVERS[who]} | {attributes} | {arguments}"


def read_boot(directory):
    """((row, pair) -> the result of the boot, row -> ns per I/O of the device a, what went wrong)."""
    times, alone, wrong = defaultdict(lambda: defaultdict(lambda: [0, 0])), defaultdict(list), []
    finished = False
    for line in (directory / "times").read_text(encoding="utf-8").splitlines():
        match line.split():
            case ["leg", number, row, who, ios, ns]:
                cycle, title, _ = number.split("-")
                times[row, title][cycle][who[0] != "a"] += int(ns)
                if who[0] == "a":
                    alone[row].append(int(ns) / int(ios))
            case ["done"]:
                finished = True
            case _:
                wrong.append(f"{directory.name}: {line}")
    if not finished:
        wrong.append(f"{directory.name}: the guest did not come to its end")
    if wrong:
        return {}, {}, wrong
    results = {key: median(log(b / a) for a, b in cycles.values()) for key, cycles in times.items()}
    return results, {row: median(values) for row, values in alone.items()}, []


def percent(values):
    """The interval of a ratio, as text."""
    low, centre, high = (100 * (exp(value) - 1) for value in interval(values))
    return f"{centre:+.1f} % ({low:+.1f} .. {high:+.1f})", low, high


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
        texts, bounds = [], []
        for title in PAIRS:
            text, *bound = percent([result[row, title] for result in results])
            texts.append(f"{text:28}")
            bounds.append(bound)
        time = median(times[row] for times in alone)
        yield f"{row:26} {time / 1000:7.2f} us   {' '.join(texts)} {verdict(*bounds)}"


def report(directories):
    """Every boot that was started, then the table of those that the gate let through."""
    results, alone, wrong = [], [], []
    for directory in map(Path, directories):
        said = (directory / "boot").read_text(encoding="utf-8").strip()
        result, times, failures = read_boot(directory)
        wrong += failures
        yield f"{directory.name}: {said}{'; FAILED' if failures else ''}"
        if "gate open" in said and not failures:
            results.append(result)
            alone.append(times)
    yield from wrong
    yield f"{len(results)} of {len(directories)} boots count, by the load of the machine before and after them, not by their times"
    if len(results) < FEWEST_BOOTS:
        yield f"no verdict: {FEWEST_BOOTS} boots at least must find the machine quiet"
        return
    yield "times as a difference to null_blk in per cent, with the 95 % interval over boots; less is faster"
    yield from table(results, alone)


def main():
    """Prints lines."""
    command, *arguments = sys.argv[1:]
    if command == "legs":
        print("\n".join(legs(arguments[0], int(arguments[1]), int(arguments[2]))))
    else:
        print("\n".join(report(arguments)))


if __name__ == "__main__":
    main()
