#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks the judges of the benchmark on measurements that are made up: each must say no where it should."""

import csv
import random
import sys
import tempfile
from pathlib import Path

import budget
import goals
import native
import sharing
import student
import table
import trust
from classes import SYNC
from measurement import HEADER, SHARING, Measurement
from symbols import Symbol

ROW = "null/direct/psync"
IOS = 1000
failed = False


def check(name, passed):
    """A line as test suites print it."""
    global failed
    failed = failed or not passed
    print(f"ok {name}" if passed else f"not ok {name} - see {Path(__file__).name}")


def measurement(directory, *lines):
    """Of (row, driver, boot, turn, class, symbol, instructions, locked)."""
    path = directory / "counts.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for row, driver, boot, turn, kind, symbol, count, locked in lines:
            writer.writerow([row, driver, boot, turn, IOS, 4096, kind, symbol, count * IOS, 0, locked * IOS, 0, 0])
    return Measurement(path)


def rnull(directory, own, locked=10, timer=10):
    """A measurement of rnull that costs so much in its driver, in timers, beside null_blk at 100."""
    c = [(ROW, "null_blk", 0, 0, "block", "blk", 2000, 10), (ROW, "null_blk", 0, 0, "driver", "queue", 100, 0)]
    c.append((ROW, "null_blk", 0, 0, SYNC, "tick", timer, 0))
    rust = [(ROW, "rnull", 0, 1, "block", "blk", 2000, locked), (ROW, "rnull", 0, 1, "driver", "serve", own, 0)]
    rust.append((ROW, "rnull", 0, 1, SYNC, "tick", timer, 0))
    return measurement(directory, *c, *rust)


def check_budget(directory):
    """Growth is refused, and its function named; a lower number is taken over; a rise needs a reason."""
    path = directory / "budget.csv"
    check("budget: the first is written", budget.write(path, rnull(directory, 50), "") == [])
    verdicts = {own: list(budget.check(rnull(directory, own), budget.read(path)))[0] for own in (50, 53, 54, 40)}
    check("budget: the same passes, so do three more", all(verdicts[own].startswith("ok") for own in (50, 53, 40)))
    check("budget: four more fail", verdicts[54].startswith("not ok") and "serve +4.0" in verdicts[54])
    locked = list(budget.check(rnull(directory, 50, locked=11), budget.read(path)))
    check("budget: a locked operation more fails", "locked operations" in locked[0])
    timers = {timer: list(budget.check(rnull(directory, 50, timer=timer), budget.read(path)))[0] for timer in (13, 14)}
    check("budget: three instructions more of timers pass", timers[13].startswith("ok"))
    check("budget: four more of timers fail", budget.TREE in timers[14] and "tick +4.0" in timers[14])
    missing = list(budget.check(measurement(directory), budget.read(path)))
    check("budget: what was not measured fails", missing[0].startswith("not ok"))
    check("budget: what has no budget fails", list(budget.check(rnull(directory, 50), {}))[0].startswith("not ok"))
    check("budget: it does not rise by itself", bool(budget.write(path, rnull(directory, 60), "")))
    check("budget: the refused number is not written", budget.read(path)[ROW][budget.OWN][0] == 50)
    budget.write(path, rnull(directory, 52), "")
    check("budget: it does not creep up", budget.read(path)[ROW][budget.OWN][0] == 50)
    budget.write(path, rnull(directory, 40), "")
    check("budget: it falls", budget.read(path)[ROW][budget.OWN][0] == 40)
    check("budget: it rises with a reason", budget.write(path, rnull(directory, 60), "why") == [])
    check("budget: the reason is kept", budget.read(path)[ROW][budget.OWN] == (60, "why"))


def check_table(directory):
    """The verdicts of a row: driver, locked, all."""
    check("table: below C", table.verdicts(rnull(directory, 99), ROW) == [True, True, True])
    check("table: above C", table.verdicts(rnull(directory, 110, 11), ROW) == [False, False, False])
    alone = measurement(directory, (ROW, "null_blk", 0, 0, "driver", "c", 1, 0))
    check("table: not measured", table.verdicts(alone, ROW) == [None] * 3)


def check_goals(directory):
    """Of locked operations, those count that a driver has a say in."""

    def up_to(who, *costs):
        lines = [(ROW, who, 0, 0, kind, symbol, 9, locked) for kind, symbol, locked in costs]
        return goals.locked(ROW)(measurement(directory, *lines), who)

    others = [("block", "sbitmap_find_bit", 1), ("rest", "io_req_normal_work_add", 1), ("block", "blk_mq_submit_bio", 1)]
    one_by_one = [("block", "blk_mq_free_request", 1), ("block", "sbitmap_queue_clear", 1)]
    together = [("block", "blk_mq_end_request_batch", 1), ("block", "sbitmap_queue_clear_batch", 0.25)]
    check("goals: locked, one by one", up_to("null_blk", *others, *one_by_one) == 2)
    check("goals: locked, together", up_to("rnull", *others, *together) == 1.25)
    own = [("driver", "serve", 1), ("abstraction", "count", 1), ("lock/tree/timer", "_raw_spin_lock", 1)]
    check("goals: locked, the driver's own and a lock", up_to("rnull", *others, *together, *own) == 4.25)
    check("goals: locked, not measured", up_to("null_blk") is None)


def check_trust(directory):
    """What was run twice must come out the same."""

    def doubts(first, second, kind, first_locked=0, second_locked=0):
        other = [(ROW, "rnull", boot, 0, "block", "other", 10000, 0) for boot in (0, 1)]
        costs = enumerate(((first, first_locked), (second, second_locked)))
        mine = [(ROW, "rnull", boot, 0, kind, "some_function", *cost) for boot, cost in costs]
        return trust.doubts(measurement(directory, *other, *mine))[1]

    check("trust: the same", doubts(100, 100, "driver") == [])
    check("trust: the driver differs", "some_function by 1.0" in str(doubts(100, 101, "driver")))
    check("trust: all differs a little", doubts(100, 120, "block") == [])
    check("trust: all differs", "some_function" in str(doubts(100, 140, "block")))
    check("trust: locks differ a little", doubts(100, 102, SYNC) == [])
    check("trust: locks differ", "some_function by 4.0" in str(doubts(100, 104, SYNC)))
    check("trust: locked operations differ a little", doubts(100, 100, "block", 20, 20.4) == [])
    check("trust: locked operations differ", "locked operations of rnull" in str(doubts(100, 100, "block", 20, 20.5)))
    check("trust: one run alone", trust.doubts(rnull(directory, 50))[1] != [])


def check_sharing(directory):
    """A line that rnull shares fails; so does a run in which C is not seen to share."""

    def lines(c, rust):
        written = [(SHARING, who, 0, 0, "share/write", "all", 9, 0) for who in ("null_blk", "rnull")]
        counts = {"null_blk": c, "rnull": rust}
        shared = [(SHARING, who, 0, 0, "share/write", "f", count, 0) for who, count in counts.items() if count]
        return [line.split(" - ")[0] for line in sharing.check(measurement(directory, *written, *shared))]

    check("sharing: C alone shares", lines(1, 0) == ["ok sharing share/write"])
    check("sharing: rnull shares", lines(1, 1) == ["not ok sharing share/write"])
    check("sharing: nobody is seen to share", lines(0, 0) == ["ok sharing share/write", "not ok sharing"])
    name = "_RNvNtNtNtCsb5MLIFMWygY_6kernel5block7gendisk10operations7release"
    check("sharing: a close is none", not sharing.is_own(Symbol(name, "")))
    check("sharing: a module's release is", sharing.is_own(Symbol("_RNvNtCsb5MLIFMWygY_5rnull4tags7release", "rnull_mod")))


def check_student():
    """Against printed tables of two-sided quantiles."""
    printed = {(0.95, 1): 12.706, (0.95, 2): 4.303, (0.95, 7): 2.365, (0.95, 30): 2.042, (0.99, 10): 3.169}
    check("student: quantiles", all(abs(student.quantile(*key) - t) < 0.001 for key, t in printed.items()))


def check_native(directory):
    """The verdict on boots with known times, and the gate."""

    def said(slower, control, gate="open"):
        choose, boots = random.Random(1), []
        for number in range(6):
            boot = directory / f"boot{number}"
            boot.mkdir(exist_ok=True)
            boots.append(boot)
            (boot / "boot").write_text(f"gate {gate}", encoding="utf-8")
            factors = {"a": 1.0, "b": control, "r": slower}
            times = []
            for line in native.legs(Path(__file__).parents[1] / "native/rows", number, 3):
                leg, row, who = (cell.strip() for cell in line.split("|")[:3])
                times.append(f"leg {leg} {row} {who} 1000 {int(1e7 * factors[who[0]] * choose.gauss(1, 0.01))}")
            (boot / "times").write_text("\n".join([*times, "done"]), encoding="utf-8")
        return list(native.report(boots))

    check("native: 10 % more is seen", all(line.endswith("rnull is slower") for line in said(1.1, 1)[-4:]))
    check("native: 10 % less is seen", all(line.endswith("rnull is faster") for line in said(0.9, 1)[-4:]))
    check("native: no difference is not seen", any(line.endswith("no difference found") for line in said(1, 1)[-4:]))
    check("native: a control that differs spoils it", all(line.endswith("says nothing") for line in said(1.1, 1.1)[-4:]))
    check("native: nothing counts when the gate is closed", said(1.1, 1, "closed")[-1].startswith("no verdict"))


def main():
    """All checks."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        check_budget(directory)
        check_table(directory)
        check_goals(directory)
        check_trust(directory)
        check_sharing(directory)
        check_native(directory)
    check_student()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
