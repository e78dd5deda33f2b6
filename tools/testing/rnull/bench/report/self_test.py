#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks the benchmark's verdicts on made-up measurements: each must fail where it should."""

import csv
import sys
import tempfile
from pathlib import Path

import budget
import goals
import repeatability
import sharing
import table
from functions import SYNC, Symbol
from measurement import HEADER, MEMORY, RUST, SCHEDULED, C, Measurement

ROW = "null/direct/psync"
POLLED = "nvme/poll/4k/uring1/read"
LOOKS = "nvme_poll", "kernel::block::mq::vtable::Vtable::rnvme::io_queue::Io::poll"
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
            costs = [count * IOS, 0, locked * IOS, 0, 0]
            writer.writerow([row, driver, boot, turn, IOS, 4096, kind, symbol, *costs])
    return Measurement(path)


def rnull(directory, own, locked=10, timer=10):
    """A measurement of rnull with these costs, beside null_blk at 100 in its driver."""
    lines = []
    for driver, turn, *costs in (C, 0, 10, 100), (RUST, 1, locked, own):
        lines.append((ROW, driver, 0, turn, "block", "blk", 2000, costs[0]))
        lines.append((ROW, driver, 0, turn, "driver", "queue", costs[1], 0))
        lines.append((ROW, driver, 0, turn, SYNC, "tick", timer, 0))
    return measurement(directory, *lines)


def check_budget(directory):
    """Growth is refused, its function named; a number falls by itself, rises with a reason."""
    path = directory / "budget.csv"
    check("budget: the first is written", budget.write(path, rnull(directory, 50), "") == [])

    def verdict(measured, limits=None):
        return next(budget.check(measured, budget.read(path) if limits is None else limits))

    for name, cost, words in [
        ("the same passes", {}, "ok"),
        ("less passes", {"own": 40}, "ok"),
        ("three instructions more pass", {"own": 53}, "ok"),
        ("four more fail", {"own": 54}, "not ok"),
        ("four more are found", {"own": 54}, "queue +4.0"),
        ("a locked operation more fails", {"locked": 11}, "locked operations"),
        ("three instructions more of timers pass", {"timer": 13}, "ok"),
        ("four more of timers fail", {"timer": 14}, budget.TREE),
        ("four more of timers are found", {"timer": 14}, "tick +4.0"),
    ]:
        found = verdict(rnull(directory, **{"own": 50, **cost}))
        check(f"budget: {name}", found.startswith(words) or (" " in words and words in found))
    missing = verdict(measurement(directory))
    check("budget: a row that was not measured fails", missing.startswith("not ok"))
    unlimited = verdict(rnull(directory, 50), {})
    check("budget: a row without budget fails", unlimited.startswith("not ok"))
    some = {what: limit for what, limit in budget.read(path)[ROW].items() if what != budget.LOCKED}
    found = verdict(rnull(directory, 50), {ROW: some})
    check("budget: a number without budget fails", found.startswith("not ok") and budget.LOCKED in found)
    check("budget: it does not rise by itself", bool(budget.write(path, rnull(directory, 60), "")))
    check("budget: the refused number is not written", budget.read(path)[ROW][budget.OWN][0] == 50)
    for name, own, limit in ("it does not creep up", 52, 50), ("it falls", 40, 40):
        budget.write(path, rnull(directory, own), "")
        check(f"budget: {name}", budget.read(path)[ROW][budget.OWN][0] == limit)
    check("budget: it rises with a reason", budget.write(path, rnull(directory, 60), "why") == [])
    check("budget: the reason is kept", budget.read(path)[ROW][budget.OWN] == (60, "why"))


def check_memory_budget(directory):
    """Each of the figures has to be there."""

    def verdict(*figures):
        found = measurement(directory, *((MEMORY, RUST, 0, 0, "", name, 4, 0) for name in figures))
        if not path.exists():
            budget.write(path, found, "")
        return next(budget.check(found, budget.read(path)))

    path = directory / "memory.csv"
    check("budget, memory: the same passes", verdict("a page", "a request").startswith("ok"))
    found = verdict("a page")
    check("budget, memory: a figure that is not there fails",
          found.startswith("not ok") and "a request" in found)
    check("budget, memory: none at all fails", verdict().startswith("not ok"))


def check_polled_budget(directory):
    """Of a row that is polled, what the driver does when it looks has no limit; the rest has."""

    def polled(own, locked, poll):
        lines = [(POLLED, RUST, 0, 0, "driver", "submit", own, locked),
                 (POLLED, RUST, 0, 0, "abstraction", "complete", 10, 0),
                 (POLLED, RUST, 0, 0, "driver", LOOKS[1], poll, 0)]
        return measurement(directory, *lines)

    path = directory / "polled.csv"
    budget.write(path, polled(50, 10, 40), "")
    for name, costs, words in [
        ("the same passes", (50, 10, 40), "ok"),
        ("looking more often passes", (50, 10, 540), "ok"),
        ("four more of the driver fail", (54, 10, 40), "submit +4.0"),
        ("a locked operation more fails", (50, 11, 40), "locked operations"),
    ]:
        found = next(budget.check(polled(*costs), budget.read(path)))
        check(f"budget, polled: {name}",
              found.startswith("ok") if words == "ok" else
              found.startswith("not ok") and words in found)


def check_table(directory):
    """The verdicts of a row: driver, locked, all."""
    check("table: below C", table.verdicts(rnull(directory, 99), ROW) == [True, True, True])
    check("table: above C", table.verdicts(rnull(directory, 110, 11), ROW) == [False, False, False])
    alone = measurement(directory, (ROW, "null_blk", 0, 0, "driver", "c", 1, 0))
    check("table: not measured", table.verdicts(alone, ROW) == [None] * 3)


def check_goals(directory):
    """Of locked operations, those count that a driver can influence."""

    def counted(driver, *costs):
        lines = [(ROW, driver, 0, 0, kind, symbol, 9, locked) for kind, symbol, locked in costs]
        return goals.locked(measurement(directory, *lines), driver, ROW)

    others = [("block", "sbitmap_find_bit", 1), ("rest", "io_req_normal_work_add", 1),
              ("block", "blk_mq_submit_bio", 1)]
    one_by_one = [("block", "blk_mq_free_request", 1), ("block", "sbitmap_queue_clear", 1)]
    together = [("block", "blk_mq_end_request_batch", 1),
                ("block", "sbitmap_queue_clear_batch", 0.25)]
    check("goals: locked, one by one", counted("null_blk", *others, *one_by_one) == 2)
    check("goals: locked, together", counted("rnull", *others, *together) == 1.25)
    own = [("driver", "serve", 1), ("abstraction", "count", 1),
           ("lock/tree/timer", "_raw_spin_lock", 1)]
    check("goals: locked, the driver's own and a lock",
          counted("rnull", *others, *together, *own) == 4.25)
    check("goals: locked, not measured", counted("null_blk") is None)


def check_repeatability(directory):
    """Repeated runs must come out the same."""

    def doubts(first, second, kind, first_locked=0, second_locked=0, row=ROW):
        other = [(row, "rnull", boot, 0, "block", "other", 10000, 0) for boot in (0, 1)]
        costs = enumerate(((first, first_locked), (second, second_locked)))
        mine = [(row, "rnull", boot, 0, kind, "some_function", *cost) for boot, cost in costs]
        return repeatability.doubts(measurement(directory, *other, *mine))[1]

    for name, costs, words in [
        ("the same", (100, 100, "driver"), None),
        ("the driver differs", (100, 101, "driver"), "some_function by 1.0"),
        ("all differs a little", (100, 120, "block"), None),
        ("all differs", (100, 140, "block"), "some_function"),
        ("locks differ a little", (100, 102, SYNC), None),
        ("locks differ", (100, 104, SYNC), "some_function by 4.0"),
        ("locked operations differ a little", (100, 100, "block", 20, 20.4), None),
        ("locked operations differ", (100, 100, "block", 20, 20.5), "locked operations with rnull"),
        ("the scheduler differs", (100, 900, SYNC, 20, 30, SCHEDULED[0]), None),
        ("it is no excuse for the driver", (100, 101, "driver", 0, 0, SCHEDULED[0]),
         "some_function by 1.0"),
        ("all differs with polling", (100, 900, "block", 20, 20, POLLED), None),
        ("it is no excuse for the driver", (100, 101, "driver", 20, 20, POLLED),
         "some_function by 1.0"),
        ("it is no excuse for locks", (100, 900, "block", 20, 22, POLLED), "locked operations"),
    ]:
        found = doubts(*costs)
        check(f"repeatability: {name}", words in str(found) if words else found == [])
    for name in LOOKS:
        polled = measurement(directory, *(
            (POLLED, "rnull", boot, 0, "driver", name, count, 0)
            for boot, count in ((0, 100), (1, 900))))
        check(f"repeatability: {name} differs", repeatability.doubts(polled)[1] == [])
    check("repeatability: one run alone", repeatability.doubts(rnull(directory, 50))[1] != [])


def check_sharing(directory):
    """A line that rnull shares fails; so does a run in which C is not seen to share."""

    def lines(c, rust):
        shown = [(driver, "all", 9) for driver in (C, RUST)]
        shown += [(driver, "f", count) for driver, count in ((C, c), (RUST, rust)) if count]
        found = measurement(directory, *(
            (sharing.SHARING, driver, 0, 0, "share/write", *line, 0) for driver, *line in shown))
        judged = [line.split(" - ")[0] for line in sharing.check(found, RUST)]
        return judged, len([*sharing.doubts(found, C, RUST)])

    check("sharing: C alone shares", lines(1, 0) == (["ok sharing share/write"], 0))
    check("sharing: rnull shares", lines(1, 1) == (["not ok sharing share/write"], 0))
    check("sharing: neither is seen to share", lines(0, 0) == (["ok sharing share/write"], 1))
    alone = measurement(directory, (sharing.SHARING, C, 0, 0, "share/write", "all", 9, 0))
    doubts = str([*sharing.doubts(alone, C, RUST)])
    check("sharing: rnull was not recorded", "no store of rnull" in doubts)
    name = "_RNvNtNtNtCsb5MLIFMWygY_6kernel5block7gendisk10operations7release"
    check("sharing: a close is none", not sharing.is_own(Symbol(name, "")))
    check("sharing: a module's release is",
          sharing.is_own(Symbol("_RNvNtCsb5MLIFMWygY_5rnull4tags7release", "rnull_mod")))


def main():
    """All checks."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        check_budget(directory)
        check_memory_budget(directory)
        check_polled_budget(directory)
        check_table(directory)
        check_goals(directory)
        check_repeatability(directory)
        check_sharing(directory)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
