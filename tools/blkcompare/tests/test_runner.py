# SPDX-License-Identifier: GPL-2.0
"""Tests of runs, with a fake machine and a fake fio."""

import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import fakes
import pytest

from blkcompare import disks
from blkcompare import runner as runner_module
from blkcompare.config import load_config
from blkcompare.db import Database, load_runs
from blkcompare.gate import Gate
from blkcompare.machine import MachineError
from blkcompare.plan import make_experiment, make_plan
from blkcompare.progress import Progress
from blkcompare.runner import RunError, Runner, cycle_order, round_order

GOVERNOR = f"{fakes.CPU}/cpufreq/policy0/scaling_governor"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr(disks, "_is_block_device", disks._is_block_device)
    monkeypatch.setattr(disks, "_sysfs_name", disks._sysfs_name)
    # What these tests are about does not need the disk to be waited for.
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(runner_module, "Database", partial(Database, durable=False))
    fakes.disks_are_files()
    return fakes.make(tmp_path)


def planned(tree, **overrides):
    return make_plan(load_config(None, [], fakes.settings(tree.top, **overrides)), tree.machine())


def runner(tree, plan, **options):
    machine = tree.machine()
    options.setdefault("gate", Gate(machine, plan["gate"], lambda: 0.02, lambda seconds: None))
    progress = Progress(io.StringIO())
    return Runner(plan, tree.top / "results", machine, progress, **options)


def results(tree):
    return load_runs(tree.top / "results/results.sqlite")


def behave(tree, words):
    (tree.top / "behaviour").write_text(words + "\n")


def test_whole_run(tree):
    plan = planned(tree)
    assert runner(tree, plan).run() == "complete"
    (run,) = results(tree)
    assert (run.state, run.plan) == ("complete", plan)
    assert [event[1:] for event in run.events] == [("restore", "the machine is as it was")]
    assert Counter((cycle.cell, cycle.number) for cycle in run.cycles) == {
        (cell["name"], number): 1 for cell in plan["cells"] for number in (1, 2)
    }
    for cycle in run.cycles:
        assert cycle.state == "kept" and len(cycle.samples) == 6
        for sample in cycle.samples:
            assert sample.iops == (1010 if sample.driver == "B" else 1000)
            assert (tree.top / "results" / sample.raw).exists()
            assert sample.covariates["temperature"] is None
            device = {"A": "/dev/a0", "B": "/dev/b0", "A2": "/dev/a1"}[sample.driver]
            assert sample.covariates["device"] == device
    assert run.boots[0].facts["microcode"] == "0x42"
    # All drivers of a cycle get the same I/O, another cycle other I/O.
    seeds = [
        {word for sample in cycle.samples for word in sample.covariates["argv"].split()
         if word.startswith("--randseed")}
        for cycle in run.cycles
    ]  # fmt: skip
    assert all(len(each) == 1 for each in seeds)
    assert len(set.union(*seeds)) == len(run.cycles)


def test_machine_is_set_up_and_restored(tree):
    plan = planned(tree)
    seen = []
    command = tree.command

    def watch(argv):
        if argv[0] != "modinfo":
            seen.append((tree.read(GOVERNOR), argv))
        return command(argv)

    made = runner(tree, plan)
    made.machine.command = watch
    made.run()
    assert seen[0] == ("performance", ["modprobe", "fake_a"])
    assert seen[-1][1] == ["modprobe", "-r", "fake_a"]
    assert tree.read(GOVERNOR) == "powersave"
    assert tree.read("/sys/block/a0/queue/scheduler") == "mq-deadline"
    assert made.machine.journal.entries() == []
    assert not list((tree.root / "dev").glob("[ab]*"))


def test_queues_are_set_while_the_load_runs(tree):
    made = runner(tree, planned(tree, cycles=1))
    seen = set()
    measure = made._measure

    def watch(*arguments):
        seen.add((tree.read("/sys/block/b0/queue/scheduler"),
                  tree.read("/sys/block/b0/queue/iostats")))  # fmt: skip
        measure(*arguments)

    made._measure = watch
    made.run()
    assert seen == {("none", "0")}


def test_orders_are_by_lot_and_balanced():
    plan = {"seed": 3, "control": True, "cycles": 1}
    orders = Counter(cycle_order(plan, r, 1, "c", 1) for r in range(600))
    assert set(orders) == {"ABCCBA", "ACBBCA", "BACCAB", "BCAACB", "CABBAC", "CBAABC"}
    assert min(orders.values()) > 60
    plan["control"] = False
    orders = Counter(cycle_order(plan, r, 1, "c", 1) for r in range(600))
    assert set(orders) == {"ABBA", "BAAB"} and min(orders.values()) > 240
    assert cycle_order(plan, 1, 1, "c", 1) == cycle_order(plan, 1, 1, "c", 1)


def test_cells_are_in_random_order():
    plan = {"seed": 3, "cycles": 2, "cells": [{"name": str(n)} for n in range(9)]}
    first, second = round_order(plan, 1), round_order(plan, 2)
    assert sorted(first) == sorted(second) and first != second
    assert [number for number, _ in first] == [1] * 9 + [2] * 9
    assert [cell for _, cell in first[:9]] != [cell for _, cell in first[9:]]


def test_next_boot_is_needed(tree):
    plan = planned(tree, boots=2, cycles=1)
    assert runner(tree, plan).run() == "reboot"
    assert runner(tree, plan).run() == "reboot"  # The boot is the same.
    (run,) = results(tree)
    assert (run.state, len(run.cycles)) == ("running", 2)
    tree.write("/proc/sys/kernel/random/boot_id", "boot-2")
    assert runner(tree, plan).run() == "complete"
    (run,) = results(tree)
    assert [boot.boot_id for boot in run.boots] == ["boot-1", "boot-2"]
    assert Counter(cycle.boot for cycle in run.cycles) == {1: 2, 2: 2}


def interrupt_at(made, position):
    """Has the machine reboot before the measurement of this number."""
    measure, count = made._measure, Counter()

    def watch(*arguments):
        count["n"] += 1
        if count["n"] == position:
            raise KeyboardInterrupt  # Not handled, as a reboot is not.
        measure(*arguments)

    made._measure = watch


def test_reboot_in_the_middle(tree):
    plan = planned(tree, boots=2, cycles=2)
    made = runner(tree, plan)
    interrupt_at(made, 9)  # In the second of four cycles.
    with pytest.raises(KeyboardInterrupt):
        made.run()
    tree.write("/proc/sys/kernel/random/boot_id", "boot-2")
    assert runner(tree, plan).run() == "reboot"
    (run,) = results(tree)
    assert [(cycle.boot, cycle.state) for cycle in run.cycles] == [
        (1, "kept"), (1, "failed"), (2, "kept"), (2, "kept"), (2, "kept"),
    ]  # fmt: skip
    # It goes on with the cycle where it stopped.
    assert [
        (cycle.number, cycle.cell) for cycle in run.cycles if cycle.state == "kept"
    ] == round_order(plan, 1)
    assert run.cycles[1].cell == run.cycles[2].cell
    assert any(kind == "resume" for _, kind, _ in run.events)
    tree.write("/proc/sys/kernel/random/boot_id", "boot-3")
    assert runner(tree, plan).run() == "complete"


def test_interruption_is_no_attempt(tree):
    plan = planned(tree, gate__attempts=1)
    made = runner(tree, plan)
    interrupt_at(made, 1)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert runner(tree, plan).run() == "complete"
    assert len([cycle for cycle in results(tree)[0].cycles if cycle.state == "kept"]) == 4


def test_complete_run_is_not_started_again_by_mistake(tree):
    plan = planned(tree, cycles=1)
    runner(tree, plan).run()
    with pytest.raises(RunError, match="has a run of this plan that is complete"):
        runner(tree, plan).run()
    assert runner(tree, plan, again=True).run() == "complete"
    assert len(results(tree)) == 2


class Busy(Gate):
    """A gate that finds these measurements busy, counted from 0."""

    def __init__(self, machine, limits, busy):
        super().__init__(machine, limits, lambda: 0.02, lambda seconds: None)
        self.busy, self.count = busy, 0

    def measure(self):
        self.count += 1
        return super().measure() | {"busy": 50 if self.count - 1 in self.busy else 0}


def test_rejected_cycle_is_run_again(tree):
    plan = planned(tree)
    gate = Busy(tree.machine(), plan["gate"], {1})
    assert runner(tree, plan, gate=gate).run() == "complete"
    (run,) = results(tree)
    first, last = run.cycles[0], run.cycles[-1]
    assert first.state == "rejected"
    assert first.reason == "after: other programs use 50.0 % of the CPUs, the limit is 10 %"
    assert len(first.samples) == 6  # They are kept, and shown.
    assert (first.cell, first.number) == (last.cell, last.number)
    assert (last.attempt, last.state) == (2, "kept")
    assert len(run.cycles) == 5


def test_nothing_is_measured_while_the_machine_is_busy(tree):
    plan = planned(tree)
    gate = Busy(tree.machine(), plan["gate"], {0})
    runner(tree, plan, gate=gate).run()
    (run,) = results(tree)
    assert (run.cycles[0].state, run.cycles[0].samples) == ("rejected", [])
    assert run.cycles[0].reason.startswith("before: ")


def test_run_stops_if_the_machine_is_never_quiet(tree):
    plan = planned(tree)
    gate = Busy(tree.machine(), plan["gate"], set(range(100)))
    with pytest.raises(RunError, match="the machine is not quiet"):
        runner(tree, plan, gate=gate).run()
    assert results(tree)[0].state == "running"
    assert tree.read(GOVERNOR) == "powersave"


def test_cycle_is_given_up(tree):
    plan = planned(tree, cycles=1, gate__attempts=2)
    gate = Busy(tree.machine(), plan["gate"], {1, 5})  # After the first cycle, twice.
    assert runner(tree, plan, gate=gate).run() == "complete"
    (run,) = results(tree)
    assert [cycle.state for cycle in run.cycles] == ["rejected", "kept", "rejected"]
    assert any("is given up after 2 attempts" in text for _, _, text in run.events)


def test_failures_stop_the_run(tree):
    plan = planned(tree)
    behave(tree, "fail")
    with pytest.raises(RunError, match="3 cycles failed one after another: .* the device is on"):
        runner(tree, plan).run()
    (run,) = results(tree)
    assert [cycle.state for cycle in run.cycles] == ["failed"] * 3
    assert (tree.top / "results/raw").glob("*.err")
    assert tree.read(GOVERNOR) == "powersave"
    behave(tree, "work")
    assert runner(tree, plan).run() == "complete"


def test_device_in_use_is_refused_before_anything_is_changed(tree):
    tree.add_disk("sdx", "8:16")
    device = {"drivers__A__driver": "device", "drivers__A__device": "/dev/sdx"}
    plan = planned(tree, disk__overwrite=["/dev/sdx"], **device)
    tree.write("/proc/self/mountinfo", "20 1 8:16 / /mnt rw - ext4 /dev/sdx rw")
    with pytest.raises(disks.RefusedError, match="mounted on /mnt"):
        runner(tree, plan).run()
    assert tree.commands == [] and not (tree.top / "results").exists()


def test_reload_for_each_cycle(tree):
    plan = planned(tree, disk__reload="cycle")
    assert runner(tree, plan).run() == "complete"
    loads = [argv for argv in tree.commands if argv == ["modprobe", "fake_b"]]
    assert len(loads) == 1 + 4


def test_set_up_that_fails_is_undone(tree):
    plan = planned(tree)
    (tree.root / "dev").mkdir(exist_ok=True)
    made = runner(tree, plan)
    command = made.machine.command

    def fail(argv):
        if argv[:2] == ["fakedisk", "add"] and argv[2].startswith("b"):
            raise MachineError("no more disks")
        return command(argv)

    made.machine.command = fail
    with pytest.raises(MachineError, match="no more disks"):
        made.run()
    assert tree.read(GOVERNOR) == "powersave"
    assert not (tree.root / "sys/module/fake_a").exists()
    assert ("warning", "the run stopped: no more disks") in [
        event[1:] for event in results(tree)[0].events
    ]


CHILD = """
import io, json, sys
sys.path.insert(0, {here!r})
from pathlib import Path
import fakes
from blkcompare.gate import Gate
from blkcompare.progress import Progress
from blkcompare.runner import Interrupted, Runner
fakes.disks_are_files()
tree = fakes.Tree.__new__(fakes.Tree)
tree.top = Path({top!r}); tree.root = tree.top / "root"; tree.commands = []
tree.modules_fail, tree.absent = False, set()
plan = json.loads((tree.top / "plan").read_text())
machine = tree.machine()
gate = Gate(machine, plan["gate"], lambda: 0.02, lambda seconds: None)
try:
    Runner(plan, tree.top / "results", machine, Progress(io.StringIO()), gate=gate).run()
except Interrupted:
    sys.exit(130)
"""


def start_child(tree, plan):
    """Starts a run in another process; returns it when a measurement is in progress."""
    import json

    (tree.top / "plan").write_text(json.dumps(plan))
    behave(tree, "sleep")
    text = CHILD.format(here=str(Path(__file__).parent), top=str(tree.top))
    environment = os.environ | {"PYTHONPATH": str(Path(disks.__file__).parents[1])}
    child = subprocess.Popen([sys.executable, "-c", text], env=environment)
    end = time.monotonic() + 20
    calls = tree.top / "calls"
    while not (calls.exists() and "--name=blkcompare" in calls.read_text()):
        assert time.monotonic() < end and child.poll() is None
        time.sleep(0.02)
    return child


def fio_pids(tree):
    return [int(line.split()[0]) for line in (tree.top / "calls").read_text().splitlines()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_restores_the_machine(tree, number):
    plan = planned(tree)
    child = start_child(tree, plan)
    assert tree.read(GOVERNOR) == "performance"
    child.send_signal(number)
    assert child.wait(20) == 130
    assert tree.read(GOVERNOR) == "powersave"
    assert not list((tree.root / "dev").glob("[ab]*"))
    assert not Path(f"/proc/{fio_pids(tree)[-1]}").exists()
    behave(tree, "work")
    assert runner(tree, plan).run() == "complete"
    (run,) = results(tree)
    assert (run.cycles[0].state, run.cycles[0].reason) == ("failed", "interrupted")
    assert len(run.cycles) == 5
    assert ("interrupt", number.name) in [event[1:] for event in run.events]


def test_next_start_restores_after_sigkill(tree):
    plan = planned(tree)
    child = start_child(tree, plan)
    child.kill()
    child.wait()
    assert tree.read(GOVERNOR) == "performance"
    assert (tree.root / "dev/a1").exists()
    behave(tree, "work")
    said = []
    made = runner(tree, plan)
    made.machine.say = said.append
    assert made.run() == "complete"
    assert said[0].startswith("an earlier run did not restore the machine")
    assert tree.read(GOVERNOR) == "powersave"
    assert not list((tree.root / "dev").glob("[ab]*"))
    (run,) = results(tree)
    assert (run.cycles[0].state, run.cycles[0].reason) == ("failed", "interrupted")
    assert len([cycle for cycle in run.cycles if cycle.state == "kept"]) == 4


def test_progress_foresees_the_end(tree):
    plan = planned(tree, boots=3)
    made = runner(tree, plan)
    made.run()
    text = made.progress.stream.getvalue()
    assert "boot 1 of 3, cycle 1 of 4: " in text
    assert " left\n" in text


def test_what_is_missing_is_said_before_anything_changes(tree):
    plan = planned(tree)
    tree.absent = {"fake_b"}
    with pytest.raises(MachineError, match="cannot be carried out here: .*no module fake_b"):
        runner(tree, plan).run()
    assert tree.read(GOVERNOR) == "powersave"
    assert tree.commands == [] and not (tree.top / "results").exists()


# Experiments.


def experiment(tree, over, *arms, **overrides):
    config = load_config(None, [], fakes.settings(tree.top, **overrides))
    return make_experiment(config, tree.machine(), fakes.design(over, *arms))


def run_all_boots(tree, plan):
    for boot in range(plan["boots"]):
        tree.write("/proc/sys/kernel/random/boot_id", f"boot-{boot}")
        state = runner(tree, plan).run()
    return state


def test_arms_of_cycles_come_by_lot(tree):
    arms = {"load": {"runtime": 0.05}}, {"load": {"runtime": 0.06}}
    plan = experiment(
        tree, "cycles", *arms, cycles=3, control=False, matrix__cells=["randread-4k-d1-j1"]
    )
    assert [cell["name"] for cell in plan["cells"]] == [
        "randread-4k-d1-j1@one", "randread-4k-d1-j1@two"
    ]  # fmt: skip
    assert run_all_boots(tree, plan) == "complete"
    (run,) = results(tree)
    orders = set()
    for boot in range(1, 5):
        cycles = [cycle for cycle in run.cycles if cycle.boot == boot]
        assert Counter(cycle.cell for cycle in cycles) == {c["name"]: 3 for c in plan["cells"]}
        orders |= {tuple(c.cell for c in cycles if c.number == n) for n in (1, 2, 3)}
    assert len(orders) == 2
    for cycle in run.cycles:
        wanted = {"one": "--runtime=50ms", "two": "--runtime=60ms"}[cycle.cell.partition("@")[2]]
        assert all(wanted in sample.covariates["argv"].split() for sample in cycle.samples)


def test_arms_of_boots_come_by_lot(tree):
    arms = {"machine": {"governor": "keep"}}, {"disk": {"reload": "cycle"}}
    plan = experiment(tree, "boots", *arms, cycles=1)
    assert sorted(plan["arms"]["by_boot"]) == [0, 0, 1, 1]
    others = [experiment(tree, "boots", *arms, seed=seed)["arms"]["by_boot"] for seed in range(9)]
    assert len(set(map(tuple, others))) > 1
    governors = []
    for boot, arm in enumerate(plan["arms"]["by_boot"], 1):
        tree.write("/proc/sys/kernel/random/boot_id", f"boot-{boot}")
        tree.commands.clear()
        made = runner(tree, plan)
        measure = made._measure

        def watch(*arguments, measure=measure):
            governors.append(tree.read(GOVERNOR))
            measure(*arguments)

        made._measure = watch
        state = made.run()
        assert set(governors) == {("powersave", "performance")[arm]}
        governors.clear()
        # The disks of A, B and C, once or for each of the two cycles as well.
        assert sum(argv[:2] == ["fakedisk", "add"] for argv in tree.commands) == (3, 9)[arm]
        (run,) = results(tree)
        cells = [cycle.cell.partition("@")[2] for cycle in run.cycles if cycle.boot == boot]
        assert cells == [("one", "two")[arm]] * 2
    assert state == "complete"


def test_estimate_of_an_experiment(tree):
    short, long = {"load": {"runtime": 1}}, {"load": {"runtime": 3}}
    one, two = (planned(tree, load__runtime=t)["estimate"]["boot"] for t in (1, 3))
    plan = experiment(tree, "cycles", short, long)
    assert plan["estimate"]["boot"] == one + two
    assert plan["estimate"]["total"] == 4 * (one + two)
    plan = experiment(tree, "boots", short, long)
    assert (plan["estimate"]["boot"], plan["estimate"]["total"]) == (two, 2 * (one + two))
