# SPDX-License-Identifier: GPL-2.0
"""The settings of the machine that the plan asks for: which files get which values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import fio
from .machine import Machine, MachineError

HUGE_PAGES = "/sys/kernel/mm/hugepages"


@dataclass(frozen=True)
class Setting:
    path: str
    value: str


def queue_settings(config: Mapping[str, Any], name: str) -> list[Setting]:
    """Returns the settings of the queue of a disk."""
    queue = f"/sys/block/{name}/queue"
    return [
        Setting(f"{queue}/{attribute}", str(config["machine"][attribute]))
        for attribute in ("scheduler", "iostats", "wbt_lat_usec")
        if config["machine"][attribute] != "keep"
    ]


def cpu_settings(machine: Machine, config: Mapping[str, Any]) -> list[Setting]:
    """Returns the settings of the CPUs, of those that this machine has."""
    found = []
    wanted = config["machine"]
    if wanted["governor"] != "keep":
        found += [
            Setting(path, wanted["governor"])
            for path in machine.glob("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor")
        ]
    if wanted["boost"] != "keep":
        on = wanted["boost"] == "on"
        for path, value in (
            ("/sys/devices/system/cpu/cpufreq/boost", on),
            ("/sys/devices/system/cpu/cpufreq/policy*/boost", on),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", not on),
        ):
            found += [Setting(each, str(int(value))) for each in machine.glob(path)]
    if wanted["clock_khz"] != "keep":
        for policy in machine.glob("/sys/devices/system/cpu/cpufreq/policy*"):
            clock = wanted["clock_khz"]
            if clock == "base":
                clock = machine.read(f"{policy}/base_frequency")
            highest = machine.read(f"{policy}/scaling_max_freq")
            if clock is None or highest is None:
                continue
            # The minimum never exceeds the maximum.
            order = ("min", "max") if int(clock) <= int(highest) else ("max", "min")
            found += [Setting(f"{policy}/scaling_{end}_freq", str(clock)) for end in order]
    return found


def huge_page_size(machine: Machine) -> int | None:
    """Returns the size of the huge pages that fio takes, or None if the kernel has none."""
    for line in (machine.read("/proc/meminfo") or "").splitlines():
        if line.startswith("Hugepagesize:"):
            kib = int(line.split()[1])
            if machine.path(f"{HUGE_PAGES}/hugepages-{kib}kB/nr_hugepages").exists():
                return kib << 10
    return None


def reserve_huge_pages(machine: Machine, cells: list[Mapping[str, Any]]) -> int:
    """Reserves what the largest cell takes, beside what is in use; returns the number of pages."""
    size = huge_page_size(machine)
    if size is None:
        raise MachineError("the kernel has no huge pages; set load.huge_pages=false")
    directory = f"{HUGE_PAGES}/hugepages-{size >> 10}kB"
    used = int(machine.read(f"{directory}/nr_hugepages") or 0) - int(
        machine.read(f"{directory}/free_hugepages") or 0
    )
    needed = max(fio.huge_pages_needed(cell["axes"], size) for cell in cells)
    if not machine.set(f"{directory}/nr_hugepages", used + needed, required=True):
        found = machine.read(f"{directory}/nr_hugepages")
        raise MachineError(
            f"of {used + needed} huge pages there are only {found}: memory is fragmented; reboot,"
            " or set load.huge_pages=false"
        )
    return needed
