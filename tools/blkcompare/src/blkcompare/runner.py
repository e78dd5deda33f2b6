# SPDX-License-Identifier: GPL-2.0
"""Carries out a plan: sets the machine up, measures the cycles, restores the machine.

The plan has as many rounds as boots.  A round has all cycles of a boot, in an order that the seed
of the plan gives.  A round that a reboot interrupts goes on after it with the cycle that was
interrupted; the next round needs another boot.
"""

from __future__ import annotations

import contextlib
import os
import platform
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import covariates, fio, needs, tune
from .db import Database
from .disks import Disks
from .gate import Gate
from .machine import Machine, MachineError
from .plan import arm_of_boot, config_of
from .progress import Progress

#: Cycles that fail one after another until the run stops.
MOST_FAILURES = 3


class Interrupted(BaseException):
    """A signal asks the run to end."""


class RunError(Exception):
    """The run stops; it can be resumed when the cause is removed."""


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Turns the signals that end a program into an exception, so that the machine is restored."""

    def handler(number: int, frame: object) -> None:
        raise Interrupted(signal.Signals(number).name)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Keeps signals from interrupting the restoration."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def cycle_order(plan: Mapping[str, Any], round_: int, number: int, cell: str, attempt: int) -> str:
    """Returns the order of the drivers in a cycle, by lot: it reads the same backwards."""
    letters = list("ABC" if plan["control"] else "AB")
    random.Random(f"{plan['seed']}/{round_}/{number}/{cell}/{attempt}").shuffle(letters)
    return "".join(letters + letters[::-1])


def round_order(plan: Mapping[str, Any], round_: int) -> list[tuple[int, str]]:
    """Returns the cycles of a round: its number and its cell, the cells in random order."""
    result = []
    arm = arm_of_boot(plan, round_)
    for number in range(1, plan["cycles"] + 1):
        cells = [cell["name"] for cell in plan["cells"] if arm in (None, cell.get("arm"))]
        random.Random(f"{plan['seed']}/{round_}/{number}").shuffle(cells)
        result += [(number, cell) for cell in cells]
    return result


class Runner:
    """A run of a plan, with its results in a directory."""

    def __init__(
        self,
        plan: Mapping[str, Any],
        directory: Path,
        machine: Machine,
        progress: Progress,
        gate: Gate | None = None,
        again: bool = False,
    ):
        self.plan = plan
        self.directory = directory
        self.machine = machine
        self.progress = progress
        self.again = again
        self.disks = Disks(machine, plan)
        self.gate = gate or Gate(machine, plan["gate"])
        self.recorder = covariates.Recorder(machine, plan)
        self.axes = {cell["name"]: cell["axes"] for cell in plan["cells"]}
        #: The configuration of each cell, which differs in the arms of an experiment.
        self.configs = {cell["name"]: config_of(plan, cell.get("arm")) for cell in plan["cells"]}
        self.config = plan["config"]
        self.modules = sorted(
            {
                module
                for side in plan["drivers"].values()
                if (module := side["description"].get("module"))
            }
        )
        self.run_id = ""
        self.rejected = 0

    def run(self) -> str:
        """Runs what this boot can: returns 'complete', or 'reboot' if more boots are planned."""
        with self.machine.hold():
            try:
                return self._run()
            finally:
                # What a signal kept _restore() from.
                with signals_wait():
                    self.machine.restore()

    def _run(self) -> str:
        with signals_raise():
            restore_leftovers(self.machine)
            needs.require(self.machine, self.plan)
            self.disks.check_existing()
            self.directory.mkdir(parents=True, exist_ok=True)
            with Database(self.directory / "results.sqlite", create=True) as database:
                self.database = database
                self.run_id = self._find_run()
                try:
                    return self._run_boot()
                except Interrupted as signal_:
                    database.fail_interrupted_cycles(self.run_id, "interrupted")
                    database.add_event(self.run_id, "interrupt", str(signal_))
                    raise
                except (RunError, MachineError) as error:
                    database.fail_interrupted_cycles(self.run_id, str(error))
                    database.add_event(self.run_id, "warning", f"the run stopped: {error}")
                    raise

    # What is left to do.

    def _find_run(self) -> str:
        """Returns the run to resume, or starts one."""
        from .db import plan_hash

        wanted = plan_hash(self.plan)
        found = [
            (run, state) for run, _, hash_, state in self.database.find_runs() if hash_ == wanted
        ]
        running = [run for run, state in found if state == "running"]
        if running:
            run = running[-1]
            lost = self.database.fail_interrupted_cycles(run)
            text = f"{lost} interrupted cycle is run again" if lost else "between two cycles"
            self.database.add_event(run, "resume", text)
            return run
        if found and not self.again:
            raise RunError(
                f"{self.directory} has a run of this plan that is {found[-1][1]}; --again starts"
                " another one beside it"
            )
        return self.database.start_run(
            self.plan,
            name=self.plan["name"],
            machine=covariates.machine_facts(self.machine),
            versions=covariates.versions(
                self.machine, fio.version(self.plan["config"]["load"]["fio"])
            ),
            cells=self.axes,
        )

    def _state(self) -> tuple[int, set[tuple[str, int]], Counter[tuple[str, int]]]:
        """Returns the round that is not complete, its kept cycles, the attempts of the others."""
        run = self.database.load_run(self.run_id)
        rounds = {boot.number: boot.facts["round"] for boot in run.boots}
        current = max(rounds.values(), default=1)
        kept, attempts = set(), Counter()
        for cycle in run.cycles:
            if rounds[cycle.boot] == current:
                key = (cycle.cell, cycle.number)
                if cycle.state == "kept":
                    kept.add(key)
                elif cycle.reason != "interrupted":
                    attempts[key] += 1
        return current, kept, attempts

    def _pending(
        self, round_: int, kept: set[tuple[str, int]], attempts: Counter[tuple[str, int]]
    ) -> deque[tuple[int, str]]:
        most = self.plan["gate"]["attempts"]
        return deque(
            (number, cell)
            for number, cell in round_order(self.plan, round_)
            if (cell, number) not in kept and attempts[cell, number] < most
        )

    def _run_boot(self) -> str:
        round_, kept, attempts = self._state()
        boots = self.database.find_boots(self.run_id)
        pending = self._pending(round_, kept, attempts)
        if boots and not pending:
            if round_ >= self.plan["boots"]:
                return self._complete()
            if self.machine.boot_id() in {boot.boot_id for boot in boots}:
                return "reboot"
            round_, kept, attempts = round_ + 1, set(), Counter()
            pending = self._pending(round_, kept, attempts)
        self.config = config_of(self.plan, arm_of_boot(self.plan, round_))
        try:
            self._set_up()
            boot = self.database.start_boot(
                self.run_id,
                boot_id=self.machine.boot_id(),
                kernel=f"{platform.release()} {platform.version()}",
                cmdline=self.machine.read("/proc/cmdline") or "",
                facts=covariates.boot_facts(self.machine, self.modules)
                | {"round": round_, "not_set": self.not_set, "spin_seconds": self.gate.best},
            )
            self._run_cycles(boot, round_, pending, len(kept), attempts)
        finally:
            self._restore()
        if round_ >= self.plan["boots"]:
            return self._complete()
        return "reboot"

    def _complete(self) -> str:
        self.database.end_run(self.run_id, "complete")
        return "complete"

    # The machine.

    def _set_up(self) -> None:
        config = self.config
        self.progress.say("setting the machine up")
        self.not_set: list[str] = []
        for setting in tune.cpu_settings(self.machine, config):
            if not self.machine.set(setting.path, setting.value):
                self.not_set.append(setting.path)
        huge = [c for c in self.plan["cells"] if self.configs[c["name"]]["load"]["huge_pages"]]
        if huge:
            tune.reserve_huge_pages(self.machine, huge)
        self.mark = self.machine.mark()
        self._make_disks()
        if self.not_set:
            self.database.add_event(
                self.run_id, "warning", f"could not be set: {', '.join(self.not_set)}"
            )
        if config["machine"]["settle"]:
            self.progress.say(f"waiting for {config['machine']['settle']:g} seconds")
            time.sleep(config["machine"]["settle"])
        self.gate.calibrate()

    def _make_disks(self) -> None:
        self.disks.make()
        for letter in self.disks.letters:
            device = self.disks.select(letter)
            self._set_queue(device)
            if self.plan["fill"]:
                self.progress.say(f"filling {device}")
                self._fill(device)
        self.recorder.refresh(self.modules)

    def _set_queue(self, device: str) -> None:
        name = Path(self.machine.path(device)).resolve().name
        for setting in tune.queue_settings(self.config, name):
            done = self.machine.set(setting.path, setting.value)
            if not done and setting.path not in self.not_set:
                self.not_set.append(setting.path)

    def _fill(self, device: str) -> None:
        name = Path(self.machine.path(device)).resolve().name
        size = int(self.machine.read(f"/sys/class/block/{name}/size") or 0) << 9
        if not size:
            raise MachineError(f"{device} has a size of 0")
        output = self.directory / "raw" / f"fill-{name}.json"
        try:
            fio.run(
                fio.fill_arguments(self.config["load"], device, size, output),
                output,
                60 + 8 * size / (100 << 20),
            )
        except fio.FioError as error:
            raise MachineError(f"{device} could not be filled: {error}") from error

    def _remake_disks(self) -> None:
        failures = self.machine.restore(self.mark)
        if failures:
            raise MachineError("; ".join(failures))
        self.disks.device.clear()
        self._make_disks()

    def _restore(self) -> None:
        with signals_wait():
            self.progress.say("restoring the machine")
            failures = self.machine.restore()
            for failure in failures:
                self.database.add_event(self.run_id, "restore", failure)
                self.progress.say(f"not restored: {failure}")
            if not failures:
                self.database.add_event(self.run_id, "restore", "the machine is as it was")

    # Measuring.

    def _run_cycles(
        self,
        boot: int,
        round_: int,
        pending: deque[tuple[int, str]],
        done: int,
        attempts: Counter[tuple[str, int]],
    ) -> None:
        failures = waits = 0
        with self.progress.show(round_, self.plan, done, len(pending)) as bar:
            while pending:
                number, cell = pending.popleft()
                bar.next(cell)
                state, reason = self._cycle(boot, round_, number, cell, attempts[cell, number] + 1)
                if state == "kept":
                    failures = waits = 0
                    bar.kept()
                    continue
                attempts[cell, number] += 1
                failures = failures + 1 if state == "failed" else 0
                waits = waits + 1 if state == "waited" else 0
                bar.rejected(cell, reason)
                if failures >= MOST_FAILURES:
                    raise RunError(f"{failures} cycles failed one after another: {reason}")
                if waits >= self.plan["gate"]["attempts"]:
                    raise RunError(
                        f"the machine is not quiet ({reason}); run again when it is, or take"
                        " another plan with other limits (the keys gate.*)"
                    )
                if attempts[cell, number] < self.plan["gate"]["attempts"]:
                    pending.append((number, cell))
                else:
                    self.database.add_event(
                        self.run_id,
                        "warning",
                        f"cycle {number} of {cell} in round {round_} is given up after"
                        f" {attempts[cell, number]} attempts: {reason}",
                    )

    def _cycle(
        self, boot: int, round_: int, number: int, cell: str, attempt: int
    ) -> tuple[str, str]:
        """Measures a cycle; returns 'kept', 'rejected', 'waited' or 'failed', and why."""
        before, reason = self.gate.wait()
        order = cycle_order(self.plan, round_, number, cell, attempt)
        cycle = self.database.start_cycle(
            self.run_id, boot, cell, number, order, gate_before=before
        )
        if reason:
            self.database.end_cycle(cycle, "rejected", reason=reason)
            return "waited", reason
        if self.config["disk"]["reload"] == "cycle":
            self._remake_disks()
        try:
            for position, letter in enumerate(order, 1):
                self._measure(cycle, position, letter, cell, f"{round_}/{number}/{attempt}")
        except fio.FioError as error:
            self.database.end_cycle(cycle, "failed", reason=str(error))
            return "failed", str(error)
        after = self.gate.measure()
        reason = self.gate.reason(after, "after")
        if reason:
            self.database.end_cycle(cycle, "rejected", reason=reason, gate_after=after)
            return "rejected", reason
        self.database.end_cycle(cycle, "kept", gate_after=after)
        return "kept", ""

    def _measure(self, cycle: int, position: int, letter: str, cell: str, place: str) -> None:
        config = self.configs[cell]
        load, axes = config["load"], self.axes[cell]
        device = self.disks.select(letter)
        if self.disks.shares_device(letter):
            self._set_queue(device)
        # Of the cycle, so that all drivers get the same I/O.
        seed = random.Random(f"{self.plan['seed']}/{place}/{cell}").getrandbits(31)
        relative = Path("raw") / f"{cycle:06}-{cell}-{position}{letter}.json"
        output = self.directory / relative
        argv = fio.load_arguments(
            load, axes, device, seed=seed, cpus=self.plan["cpus"], huge=load["huge_pages"],
            output=output,
        )  # fmt: skip
        pages = covariates.BufferPages(load["ramp"], axes["jobs"])
        self.recorder.before()
        result = fio.run(
            argv,
            output,
            load["ramp"] + load["runtime"] + load["time_limit"],
            pages if config["covariates"]["pagemap"] else None,
        )
        extra = {**result.extra, **pages.found, "device": device}
        extra["fio_stderr"] = result.stderr or None
        self.database.add_sample(
            cycle,
            position,
            iops=result.iops,
            bandwidth=result.bandwidth,
            latency=result.latency,
            started=result.started,
            ended=result.ended,
            raw=str(relative) + ".gz",
            covariates=self.recorder.after(argv, extra),
        )


def restore_leftovers(machine: Machine) -> int:
    """Undoes what a run that crashed has left; returns the number of changes."""
    left = len(machine.journal.entries())
    if left:
        machine.say(f"an earlier run did not restore the machine: undoing its {left} changes")
        with signals_wait():
            failures = machine.restore()
        if failures:
            raise MachineError(
                "the changes of an earlier run could not be undone: " + "; ".join(failures)
            )
    return left


def require_root() -> None:
    if os.geteuid() != 0:
        raise MachineError("this changes the machine, and has to be run by root")
