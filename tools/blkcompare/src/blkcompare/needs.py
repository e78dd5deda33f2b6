# SPDX-License-Identifier: GPL-2.0
"""What a plan needs of the machine: all that is missing is said before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import fio
from .disks import prove
from .machine import Machine, MachineError

#: The packages of Debian that have the programs.
PACKAGES = {"fio": "fio", "modprobe": "kmod", "modinfo": "kmod", "losetup": "mount"}


def _program(machine: Machine, name: str, hint: str = "") -> list[str]:
    if machine.has_program(name):
        return []
    if name in PACKAGES:
        hint = f"on Debian it is in the package {PACKAGES[name]}"
    return [f"the program {name} is not installed{_in_brackets(hint)}"]


def _module(machine: Machine, description: Mapping[str, Any], hint: str) -> list[str]:
    """Says whether a module can be loaded or is built in, and is the right one."""
    name = description.get("module")
    if not name or machine.module_loaded(name):
        return []
    lacking = _program(machine, "modprobe")
    if lacking:
        return lacking
    try:
        machine.command(["modinfo", "-F", "filename", name])
    except MachineError:
        release = machine.read("/proc/sys/kernel/osrelease") or "that runs"
        return [f"the kernel {release} has no module {name}{_in_brackets(hint)}"]
    try:
        prove(machine, name, description)
    except MachineError as error:
        return [f"{error}{_in_brackets(hint)}"]
    return []


def _in_brackets(hint: str) -> str:
    return f" ({hint})" if hint else ""


def missing(machine: Machine, plan: Mapping[str, Any]) -> list[str]:
    """Returns sentences about what the plan needs, and the machine lacks."""
    load = plan["config"]["load"]
    found: list[str] = []
    if fio.version(load["fio"]) is None:
        found += _program(machine, load["fio"]) or [f"{load['fio']} --version fails"]
    if load["engine"] == "io_uring":
        disabled = machine.read("/proc/sys/kernel/io_uring_disabled") or "0"
        if disabled.strip() == "2":
            found.append(
                "io_uring is turned off: set kernel.io_uring_disabled to 0 by sysctl, or take"
                " load.engine=libaio"
            )
    for driver in plan["drivers"].values():
        description = driver["description"]
        hint = description.get("hint", "")
        found += _module(machine, description, hint)
        if description["kind"] == "loop":
            found += _program(machine, "losetup")
        if description["kind"] == "command":
            for command in ("start", "stop"):
                found += _program(machine, description[command][0], hint)
        if description["kind"] == "pci":
            address = driver["address"]
            if not machine.path(f"/sys/bus/pci/devices/{address}").exists():
                found.append(f"there is no PCI device {address}; lspci -D shows those that are")
    return list(dict.fromkeys(found))


def require(machine: Machine, plan: Mapping[str, Any]) -> None:
    """Refuses a plan that the machine cannot carry out, before anything is changed."""
    found = missing(machine, plan)
    if found:
        raise MachineError("the plan cannot be carried out here: " + "; ".join(found))
