# SPDX-License-Identifier: GPL-2.0
"""The gate: whether the machine is quiet, by limits that are fixed in the plan.

The gate measures before and after a cycle, while no load runs, so it knows nothing of the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from .machine import Machine

#: Steps of the loop, about 20 ms of work.
SPIN_STEPS = 200_000


def spin() -> float:
    """Returns the seconds that a fixed amount of work takes."""
    start = time.perf_counter()
    value = 1
    for _ in range(SPIN_STEPS):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return time.perf_counter() - start


def cpu_times(machine: Machine) -> tuple[int, int, int]:
    """Returns the ticks of all CPUs: in total, busy, and stolen."""
    words = (machine.read("/proc/stat") or "").partition("\n")[0].split()[1:9]
    ticks = [int(word) for word in words] + [0] * (8 - len(words))
    total, idle, steal = sum(ticks), ticks[3] + ticks[4], ticks[7]
    return total, total - idle - steal, steal


class Gate:
    """Measures how quiet the machine is."""

    def __init__(
        self,
        machine: Machine,
        limits: Mapping[str, Any],
        spin: Callable[[], float] = spin,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.machine = machine
        self.limits = limits
        self._spin = spin
        self._sleep = sleep
        self.best = 0.0

    def calibrate(self) -> float:
        """Finds the best time of the loop; called once in a boot, before the first cycle."""
        self.best = min(self._spin() for _ in range(20))
        return self.best

    def measure(self) -> dict[str, float]:
        """Returns how much slower than at its best the loop is, the load and the stolen time."""
        total, busy, steal = cpu_times(self.machine)
        self._sleep(self.limits["window"])
        now = cpu_times(self.machine)
        elapsed = max(now[0] - total, 1)
        # The median: an interrupt in one of them is no load.
        slow = sorted(self._spin() for _ in range(5))[2] / self.best - 1
        load = (self.machine.read("/proc/loadavg") or "0").split()[0]
        return {
            "spin": round(100 * slow, 2),
            "busy": round(100 * (now[1] - busy) / elapsed, 2),
            "steal": round(100 * (now[2] - steal) / elapsed, 2),
            "load": float(load),
        }

    def reason(self, measured: Mapping[str, float], when: str) -> str | None:
        """Returns why the machine is not quiet, or None if it is."""
        units = {
            "spin": "the loop is {:.1f} % slower than at its best, the limit is {:g} %",
            "busy": "other programs use {:.1f} % of the CPUs, the limit is {:g} %",
            "steal": "{:.1f} % of the CPUs' time is stolen, the limit is {:g} %",
        }
        for name, text in units.items():
            if measured[name] > self.limits[name]:
                return f"{when}: " + text.format(measured[name], self.limits[name])
        return None

    def wait(self) -> tuple[dict[str, float], str | None]:
        """Measures until the machine is quiet, or the plan's patience ends."""
        start = time.monotonic()
        while True:
            measured = self.measure()
            measured["waited"] = round(time.monotonic() - start, 1)
            reason = self.reason(measured, "before")
            if reason is None or measured["waited"] >= self.limits["wait"]:
                return measured, reason
