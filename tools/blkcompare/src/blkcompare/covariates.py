# SPDX-License-Identifier: GPL-2.0
"""What is recorded beside each sample, because it may explain modes.

A value that the machine lacks is None, which the database keeps as absent.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import __version__
from .machine import Machine

#: Buffers that are looked at in each job, in pages: enough for a histogram, soon done.
MOST_PAGES = 65536
#: Colours of pages: the sets of a cache of 2048 sets and lines of 64 bytes, in pages of 4 KiB.
COLOURS = 32


def _hash(text: str | bytes | None) -> str | None:
    if text is None:
        return None
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def kernel_config(machine: Machine) -> bytes | None:
    """Returns the configuration of the running kernel."""
    for path in ("/proc/config.gz", f"/boot/config-{platform.release()}"):
        try:
            data = machine.path(path).read_bytes()
        except OSError:
            continue
        return gzip.decompress(data) if path.endswith(".gz") else data
    return None


def cpu_info(machine: Machine, key: str) -> str | None:
    """Returns what /proc/cpuinfo says about the first CPU."""
    for line in (machine.read("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def build_id(machine: Machine, module: str | None) -> str | None:
    """Returns the build id in the notes of a module, or of the kernel."""
    path = f"/sys/module/{module}/notes/.note.gnu.build-id" if module else "/sys/kernel/notes"
    try:
        data = machine.path(path).read_bytes()
    except OSError:
        return None
    while len(data) >= 12:
        name_size, size, kind = struct.unpack_from("=III", data)
        start = 12 + (name_size + 3) // 4 * 4
        if kind == 3 and data[12 : 12 + name_size] == b"GNU\0":
            return data[start : start + size].hex()
        data = data[start + (size + 3) // 4 * 4 :]
    return None


def module_address(machine: Machine, module: str) -> str | None:
    """Returns where the code of a module is, unless the kernel hides that."""
    found = machine.read(f"/sys/module/{module}/sections/.text")
    return found if found and int(found, 16) else None


def machine_facts(machine: Machine) -> dict[str, Any]:
    """Returns what a machine is: the same in all its boots."""
    identifier = machine.read("/etc/machine-id") or machine.read("/sys/class/dmi/id/product_uuid")
    model = cpu_info(machine, "model name") or platform.machine()
    name = platform.node()
    # A guest without a name has that of its CPU.
    name = model if name in ("", "(none)", "localhost") else name
    # The identifier of a machine is not for publication.
    return {
        "id": _hash(identifier or name),
        "name": name,
        "cpu": model,
        "cpus": len(cpus(machine)),
        "memory_kib": memory(machine).get("MemTotal"),
        "product": machine.read("/sys/class/dmi/id/product_name"),
        "hypervisor": "hypervisor" in (cpu_info(machine, "flags") or "").split(),
    }


def boot_facts(machine: Machine, modules: list[str]) -> dict[str, Any]:
    """Returns what may differ from boot to boot."""
    facts: dict[str, Any] = {
        "config_hash": _hash(kernel_config(machine)),
        "cmdline_hash": _hash(machine.read("/proc/cmdline")),
        "kernel_build_id": build_id(machine, None),
        "microcode": cpu_info(machine, "microcode"),
        "clocksource": machine.read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "mitigations": _hash(
            "\n".join(
                f"{path} {machine.read(path)}"
                for path in machine.glob("/sys/devices/system/cpu/vulnerabilities/*")
            )
            or None
        ),
        "thp": machine.read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "tainted": machine.read("/proc/sys/kernel/tainted"),
    }
    for module in modules:
        facts[f"module.{module}.build_id"] = build_id(machine, module)
        facts[f"module.{module}.srcversion"] = machine.read(f"/sys/module/{module}/srcversion")
    return facts


def versions(machine: Machine, fio_version: str | None) -> dict[str, str]:
    return {
        "blkcompare": __version__,
        "fio": fio_version or "unknown",
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def cpus(machine: Machine) -> list[int]:
    """Returns the CPUs that this program may use; of a core with several threads, one first.

    The jobs of a load are pinned in this order.
    """
    usable = sorted(os.sched_getaffinity(0))

    def order(cpu: int) -> tuple[bool, int]:
        siblings = machine.read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        first = (siblings or str(cpu)).replace("-", ",").split(",")[0]
        return (first != str(cpu), cpu)

    return sorted(usable, key=order)


def memory(machine: Machine) -> dict[str, int]:
    """Returns /proc/meminfo, in KiB where it has a unit."""
    result = {}
    for line in (machine.read("/proc/meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        result[name] = int(rest.split()[0])
    return result


def buddyinfo(machine: Machine) -> str | None:
    """Returns the free blocks of each order, the sum of all zones: "12,3,..."."""
    text = machine.read("/proc/buddyinfo")
    if not text:
        return None
    counts = [[int(word) for word in line.split()[4:]] for line in text.splitlines()]
    return ",".join(str(sum(column)) for column in zip(*counts, strict=False))


def temperature(machine: Machine) -> float | None:
    """Returns the highest temperature of the machine, in degrees Celsius."""
    found = [
        int(text)
        for pattern in ("/sys/class/thermal/thermal_zone*/temp", "/sys/class/hwmon/*/temp*_input")
        for path in machine.glob(pattern)
        if (text := machine.read(path)) and text.lstrip("-").isdigit()
    ]
    return max(found) / 1000 if found else None


def clock(machine: Machine) -> float | None:
    """Returns the mean clock of the CPUs, in MHz."""
    found = [
        int(text) / 1000
        for path in machine.glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
        if (text := machine.read(path))
    ]
    if not found:
        found = [
            float(line.partition(":")[2])
            for line in (machine.read("/proc/cpuinfo") or "").splitlines()
            if line.startswith("cpu MHz")
        ]
    return round(sum(found) / len(found), 1) if found else None


def idle_times(machine: Machine) -> dict[str, int]:
    """Returns the microseconds in each C-state, the sum of all CPUs."""
    result: dict[str, int] = {}
    for path in machine.glob("/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/time"):
        name = machine.read(path.removesuffix("time") + "name")
        time_in = machine.read(path)
        if name and time_in:
            result[name] = result.get(name, 0) + int(time_in)
    return result


class KernelLog:
    """Counts the records that the kernel adds to its log."""

    def __init__(self, machine: Machine):
        try:
            self._fd = os.open(
                machine.path("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            )
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:
            self._fd = -1

    def new(self) -> list[str] | None:
        """Returns the text of the records since the last call."""
        if self._fd < 0:
            return None
        found = []
        while True:
            try:
                record = os.read(self._fd, 8192)
            except BrokenPipeError:
                continue  # Records were overwritten.
            except OSError:
                return found
            if not record:
                return found
            # Records of user space have a facility.
            prefix, _, text = record.partition(b";")
            if int(prefix.split(b",")[0]) < 8:
                found.append(text.split(b"\n")[0].decode(errors="replace"))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def children(pid: int) -> list[int]:
    """Returns the children of a process."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        pass
    if found:
        return found
    # Without CONFIG_PROC_CHILDREN.
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def _anonymous(pid: int) -> list[tuple[int, int]]:
    """Returns the ranges of anonymous memory of a process that it can write to."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(None, 5)
        name = words[5] if len(words) > 5 else ""
        if words[1].startswith("rw") and (not name or name.startswith("/anon_hugepage")):
            start, _, end = words[0].partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found


def without(ranges: list[tuple[int, int]], taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns what is left of ranges when others are taken away."""
    for low, high in taken:
        left = []
        for start, end in ranges:
            if start < min(low, end):
                left.append((start, min(low, end)))
            if max(high, start) < end:
                left.append((max(high, start), end))
        ranges = left
    return ranges


def frames(pid: int, parent: int) -> list[int] | None:
    """Returns the numbers of the physical pages of the buffer of a job of fio.

    The buffer is the largest range that the job has, and its parent has not.
    """
    size = os.sysconf("SC_PAGE_SIZE")
    try:
        ranges = without(_anonymous(pid), _anonymous(parent))
        if not ranges:
            return None
        low, high = max(ranges, key=lambda each: each[1] - each[0])
        with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
            file.seek(low // size * 8)
            data = file.read(min((high - low) // size, MOST_PAGES) * 8)
    except OSError:
        return None
    entries = struct.unpack(f"={len(data) // 8}Q", data[: len(data) // 8 * 8])
    found = [entry & ((1 << 55) - 1) for entry in entries if entry >> 63]
    return found if any(found) else None  # Without privilege all are 0.


def describe_frames(found: list[int]) -> dict[str, float | int | str]:
    """Describes physical pages: how many, in how many pieces, how they fall on cache sets."""
    pieces = 1 + sum(after != before + 1 for before, after in zip(found, found[1:], strict=False))
    colours = [0] * COLOURS
    for frame in found:
        colours[frame % COLOURS] += 1
    mean = len(found) / COLOURS
    return {
        "buffer_pages": len(found),
        "buffer_pieces": pieces,
        "buffer_colours": ",".join(map(str, colours)),
        # 0: even; the variance that pages at random have is 1.
        "buffer_colour_imbalance": round(sum((n - mean) ** 2 for n in colours) / mean / COLOURS, 3),
        "buffer_first_frame": found[0],
    }


class BufferPages:
    """Finds the physical pages of the buffers of fio's jobs, during the ramp."""

    NAMES = ("buffer_pages", "buffer_pieces", "buffer_colours", "buffer_colour_imbalance",
             "buffer_first_frame")  # fmt: skip

    def __init__(self, ramp: float, jobs: int):
        self.ramp = ramp
        self.jobs = jobs
        self.found: dict[str, Any] = dict.fromkeys(self.NAMES)

    def __call__(self, pid: int) -> None:
        # The jobs are started before the ramp begins.
        end = time.monotonic() + 5
        while len(jobs := children(pid)) < self.jobs:
            if time.monotonic() > end:
                return
            time.sleep(0.02)
        # The buffers exist a moment after the jobs.
        time.sleep(min(0.1, self.ramp / 2))
        pages = [frame for job in jobs for frame in frames(job, pid) or []]
        if pages:
            self.found = describe_frames(pages)


class Recorder:
    """Records the covariates of a sample: ``before()`` it, then ``after()`` it."""

    def __init__(self, machine: Machine, plan: Mapping[str, Any]):
        self.machine = machine
        self.plan = plan
        self.log = KernelLog(machine)
        #: What stays for a boot, or until the disks are made anew.
        self.constant: dict[str, Any] = {}

    def refresh(self, modules: list[str]) -> None:
        self.constant = {
            f"module.{module}.address": module_address(self.machine, module) for module in modules
        }

    def before(self) -> None:
        self._buddyinfo = buddyinfo(self.machine)
        self._idle = idle_times(self.machine)
        self._started = time.monotonic()
        self.log.new()

    def after(self, argv: list[str], extra: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the covariates of the sample that just ended."""
        machine = self.machine
        seconds = time.monotonic() - self._started
        values: dict[str, Any] = dict(self.constant)
        values["buddyinfo_before"] = self._buddyinfo
        values["buddyinfo_after"] = buddyinfo(machine)
        values["temperature"] = temperature(machine)
        values["clock_mhz"] = clock(machine)
        idle = idle_times(machine)
        if idle:
            for name, now in idle.items():
                part = (now - self._idle.get(name, 0)) / 1e6 / seconds
                values[f"idle.{name}"] = round(part, 4)
        else:
            values["idle"] = None
        lines = self.log.new() if self.plan["config"]["covariates"]["dmesg"] else None
        values["dmesg_lines"] = None if lines is None else len(lines)
        values["dmesg"] = "\n".join(lines) if lines else None
        memory_now = memory(machine)
        values["free_kib"] = memory_now.get("MemFree")
        values["huge_pages_free"] = memory_now.get("HugePages_Free")
        values["uptime"] = float((machine.read("/proc/uptime") or "0").split()[0]) or None
        values["argv"] = " ".join(argv)
        return values | extra


def describe_absent(machine: Machine) -> list[str]:
    """Returns what this machine cannot record, for the plan."""
    checks = {
        "temperature": temperature(machine),
        "clock": clock(machine),
        "C-states": idle_times(machine),
        "buddyinfo": buddyinfo(machine),
        "microcode": cpu_info(machine, "microcode"),
        "kernel log": os.access(machine.path("/dev/kmsg"), os.R_OK),
    }
    return [name for name, value in checks.items() if not value]
