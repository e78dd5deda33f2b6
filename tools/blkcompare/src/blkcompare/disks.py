# SPDX-License-Identifier: GPL-2.0
"""The disks that are compared: made from the description of a driver, checked, and removed.

A description says how disks of a driver come into being.  Its ``kind`` is one of

======== =========================================================================================
configfs A directory of configfs is a disk; the attribute ``power`` adds it.
module   Loading the module makes disks.
loop     ``losetup`` makes a disk of a file.
command  A command makes a disk, another one removes it.
pci      A PCI device is bound to the driver.  If A and B have the same one, it changes hands
         before each measurement.
device   A block device that exists is taken as it is.
======== =========================================================================================
"""

from __future__ import annotations

import errno
import os
import stat
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .config import Config, ConfigError, packaged, read_toml
from .machine import Machine, MachineError

KINDS = ("configfs", "module", "loop", "command", "pci", "device")
#: What a description may have, and what it must have by kind.
FIELDS = {
    "summary", "kind", "module", "parameters", "configfs", "description", "not_description",
    "device", "memory", "pci_driver", "start", "stop", "first_id", "disk", "hint",
}  # fmt: skip
REQUIRED = {
    "configfs": ("module", "configfs"),
    "module": ("module", "device"),
    "loop": (),
    "command": ("start", "stop", "device"),
    "pci": ("pci_driver",),
    "device": (),
}
#: The letters of an order, and the side of the comparison that each belongs to.
SIDE = {"A": "A", "B": "B", "C": "A"}


class RefusedError(MachineError):
    """A device is not used, because it is in use or the plan does not name it."""


def describe(name: str) -> dict[str, Any]:
    """Returns the description of a driver, by its name or the path of its file."""
    if name.endswith(".toml"):
        description = read_toml(Path(name))
    else:
        known = packaged("drivers")
        if name not in known:
            raise ConfigError(
                f"there is no description of a driver {name}; there are {', '.join(known)}, and"
                " the path of a TOML file can be given"
            )
        description = tomllib.loads(known[name])
    unknown = set(description) - FIELDS
    if unknown:
        raise ConfigError(
            f"the description {name} has {', '.join(sorted(unknown))}, which is not known"
        )
    kind = description.get("kind")
    if kind not in KINDS:
        raise ConfigError(f"the description {name} has the kind {kind}, not one of {KINDS}")
    for field in REQUIRED[kind]:
        if not description.get(field):
            raise ConfigError(f"the description {name} lacks {field}, which {kind} needs")
    return description


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def plan_driver(config: Config, side: str, cpus: int) -> tuple[dict[str, Any], list[str]]:
    """Returns what the plan says about a driver, and sentences about what it cannot do."""
    keys = config.section(f"drivers.{side}")
    if not keys["driver"]:
        raise ConfigError(
            f"the plan does not say which driver {side} is; set drivers.{side}.driver"
            f" or --{side.lower()}"
        )
    description = describe(keys["driver"])
    kind = description["kind"]
    name = keys["name"] or Path(keys["driver"]).stem
    disk = config.section("disk")
    if disk["queues"] == "cpus":
        disk["queues"] = cpus
    attributes, parameters, lacking = {}, dict(description.get("parameters", {})), []
    known = description.get("disk", {})
    settings = (
        "size",
        "memory",
        "completion",
        "completion_ns",
        "queues",
        "poll_queues",
        "depth",
        "block_size",
        "discard",
        "zoned",
    )
    for key in settings:
        value = disk[key]
        if key == "completion_ns" and disk["completion"] != "timer":
            continue
        if key not in known:
            off = key in ("discard", "zoned", "poll_queues") and not value
            same = key == "memory" and description.get("memory") == value
            if not off and not same and kind not in ("device", "pci"):
                lacking.append(key)
            continue
        rule = known[key]
        if "values" in rule:
            value = rule["values"][value]
        if "unit" in rule:
            if value % rule["unit"]:
                raise ConfigError(f"disk.{key} has to be a multiple of {rule['unit']} for {name}")
            value //= rule["unit"]
        if "attribute" in rule:
            attributes[rule["attribute"]] = _text(value)
        if "parameter" in rule:
            parameters[rule["parameter"]] = _text(value)
    if kind == "device" and not keys["device"]:
        raise ConfigError(f"drivers.{side}.device does not say which block device {name} is")
    if kind == "pci" and not keys["address"]:
        raise ConfigError(f"drivers.{side}.address does not say which PCI device {name} drives")
    if kind in ("device", "pci") and keys["attributes"]:
        raise ConfigError(f"drivers.{side}.attributes: {name} is taken as it is")
    attributes |= {key: _text(value) for key, value in keys["attributes"].items()}
    parameters |= {key: _text(value) for key, value in keys["parameters"].items()}
    return {
        "name": name,
        "driver": keys["driver"],
        "description": description,
        "attributes": attributes,
        "parameters": {key: _text(value) for key, value in parameters.items()},
        "device": keys["device"],
        "control_device": keys["control_device"] or keys["device"],
        "address": keys["address"],
    }, [f"{name} has no setting for {', '.join(lacking)} of disk"] * bool(lacking)


def planned_devices(drivers: Mapping[str, Any], letters: str) -> dict[str, dict[str, Any]]:
    """Returns for each letter the device, and whether the run makes it.

    The path of a device that the kernel names only when it is made is a pattern.
    """
    result = {}
    used: dict[str, int] = {}
    for letter in letters:
        driver = drivers[SIDE[letter]]
        description = driver["description"]
        kind = description["kind"]
        index = used.get(description.get("module", kind), 0)
        used[description.get("module", kind)] = index + 1
        match kind:
            case "configfs":
                device = f"/dev/blkcompare_{letter.lower()}"
            case "module":
                device = description["device"].format(index=index)
            case "loop":
                device = "/dev/loop*"
            case "command":
                device = description["device"].format(id=description.get("first_id", 0) + index)
            case "pci":
                device = driver["address"]
            case "device":
                device = driver["control_device" if letter == "C" else "device"]
        result[letter] = {
            "device": device,
            "index": index,
            "made": kind not in ("pci", "device"),
        }
    return result


# What a device is, and whether it is in use.


def _sysfs_name(machine: Machine, device: str) -> str:
    """Returns the name of a device in /sys/class/block, where a '/' of /dev is a '!'."""
    path = machine.path(device)
    if path.is_symlink():
        path = path.resolve()
        device = "/" + str(path.relative_to(machine.root.resolve()))
    return device.removeprefix("/dev/").replace("/", "!")


def identity(machine: Machine, device: str) -> dict[str, str]:
    """Returns what tells a device from others: its size, and its serial number if it has one."""
    directory = f"/sys/class/block/{_sysfs_name(machine, device)}"
    found = {"sectors": machine.read(f"{directory}/size") or ""}
    for file in ("wwid", "device/wwid", "device/serial", "serial"):
        text = machine.read(f"{directory}/{file}")
        if text:
            found["serial"] = text
            break
    return found


def _parts(machine: Machine, name: str) -> list[str]:
    """Returns the device and its partitions."""
    found = machine.glob(f"/sys/class/block/{name}/{name}*/partition")
    return [name, *(path.split("/")[-2] for path in found)]


def users(machine: Machine, device: str) -> list[str]:
    """Returns sentences that say what uses a device or one of its partitions."""
    name = _sysfs_name(machine, device)
    mounts = [line.split() for line in (machine.read("/proc/self/mountinfo") or "").splitlines()]
    swaps = [line.split()[0] for line in (machine.read("/proc/swaps") or "").splitlines()[1:]]
    swaps = [_sysfs_name(machine, swap) for swap in swaps if swap.startswith("/dev/")]
    found = []
    for part in _parts(machine, name):
        directory = f"/sys/class/block/{part}"
        number = machine.read(f"{directory}/dev")
        found += [f"/dev/{part} is mounted on {m[4]}" for m in mounts if m[2] == number]
        sources = (m[m.index("-") + 2] for m in mounts if "-" in m)
        if not found and f"/dev/{part}" in sources:
            found.append(f"/dev/{part} is mounted")
        found += [
            f"/dev/{part} is held by {holder.rpartition('/')[2]}"
            for holder in machine.glob(f"{directory}/holders/*")
        ]
        if part in swaps:
            found.append(f"/dev/{part} is swap space")
    for backing in machine.glob("/sys/class/block/loop*/loop/backing_file"):
        file = machine.read(backing)
        if not file or not file.startswith("/dev/"):
            continue
        if _sysfs_name(machine, file) in _parts(machine, name):
            found.append(f"{device} is held by {backing.split('/')[4]}")
    return found


def _is_block_device(path: Path) -> bool:
    return stat.S_ISBLK(path.stat().st_mode)


def _open_exclusively(path: Path) -> None:
    """Fails with EBUSY if the kernel uses a device: in any namespace, or through any layer."""
    os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))


def check_device(
    machine: Machine, device: str, named: list[str], recorded: Mapping[str, str] | None = None
) -> None:
    """Refuses a device that is in use, that the plan does not name, or that is another one now."""
    if device not in named:
        raise RefusedError(f"{device} is not named in the plan")
    path = machine.path(device)
    try:
        block = _is_block_device(path)
    except OSError as error:
        raise RefusedError(f"{device}: {error.strerror}") from error
    if not block:
        raise RefusedError(f"{device} is not a block device")
    in_use = users(machine, device)
    if in_use:
        raise RefusedError(f"{device} is refused: {'; '.join(in_use)}")
    if recorded is not None:
        now = identity(machine, device)
        if now != dict(recorded):
            raise RefusedError(
                f"{device} is not the device that the plan was made with: it was {dict(recorded)},"
                f" and is {now}"
            )
    try:
        _open_exclusively(path)
    except OSError as error:
        why = "something uses it" if error.errno == errno.EBUSY else error.strerror
        raise RefusedError(f"{device} is refused: {why}") from error


def pci_disks(machine: Machine, address: str) -> list[str]:
    """Returns the disks of a PCI device."""
    top = machine.path(f"/sys/bus/pci/devices/{address}").resolve()
    found = []
    for link in machine.glob("/sys/class/block/*"):
        path = machine.path(link).resolve()
        hidden = machine.read(f"{link}/hidden") == "1"
        if top in path.parents and not (path / "partition").exists() and not hidden:
            found.append("/dev/" + path.name.replace("!", "/"))
    return found


def prove(machine: Machine, module: str, description: Mapping[str, Any]) -> None:
    """Refuses a module that is not, by what it says about itself, that of the description."""
    expected = description.get("description")
    excluded = description.get("not_description")
    if not expected and not excluded:
        return
    try:
        found = machine.command(["modinfo", "-F", "description", module]).strip()
    except MachineError:
        found = ""  # Built in, without the list of built-in modules.
    if excluded and found == excluded or expected and found != expected:
        raise MachineError(
            f"the module {module} is not that of the plan, but: {found or 'unknown'}"
        )


class Disks:
    """The disks of a run, by the letters of an order."""

    def __init__(self, machine: Machine, plan: Mapping[str, Any]):
        self.machine = machine
        self.plan = plan
        self.device: dict[str, str] = {}

    @property
    def letters(self) -> str:
        return "ABC" if self.plan["control"] else "AB"

    def driver(self, letter: str) -> Mapping[str, Any]:
        return self.plan["drivers"][SIDE[letter]]

    def _planned(self, letter: str) -> Mapping[str, Any]:
        return self.plan["devices"][letter]

    def shares_device(self, letter: str) -> bool:
        """Whether the device of a letter has to change hands before each measurement."""
        return self.driver(letter)["description"]["kind"] == "pci"

    def check_existing(self) -> None:
        """Refuses devices that exist and may not be used, before anything is changed."""
        named = self.plan["overwrite"] if self.plan["writes"] else None
        for letter in self.letters:
            planned = self._planned(letter)
            if planned["made"]:
                continue
            device = planned["device"]
            if self.driver(letter)["description"]["kind"] == "pci":
                if named is not None and device not in named:
                    raise RefusedError(f"{device} is not named in disk.overwrite of the plan")
                if not self.machine.path(f"/sys/bus/pci/devices/{device}").exists():
                    raise RefusedError(f"there is no PCI device {device}")
                for disk in pci_disks(self.machine, device):
                    check_device(self.machine, disk, [disk])
            else:
                allowed = [device] if named is None else named
                check_device(self.machine, device, allowed, planned.get("identity"))

    def make(self) -> None:
        """Makes the disks of all letters."""
        for letter in self.letters:
            self._load_module(letter)
            self._make(letter)

    def _load_module(self, letter: str) -> None:
        driver = self.driver(letter)
        description = driver["description"]
        module = description.get("module")
        if not module:
            return
        machine = self.machine
        sizes = self.plan["config"]["disk"]
        fields = {
            "count": sum(
                self.driver(other)["description"].get("module") == module for other in self.letters
            ),
            "size_kib": sizes["size"] >> 10,
        }
        parameters = {key: value.format(**fields) for key, value in driver["parameters"].items()}
        loaded = machine.load_module(module, parameters)
        if description["kind"] == "module" and not loaded and not self.device:
            raise RefusedError(
                f"{module} is loaded already, and its disks may have data; unload it,"
                " or name its disks as devices"
            )
        prove(machine, module, description)

    def _make(self, letter: str) -> None:
        driver, planned = self.driver(letter), self._planned(letter)
        description = driver["description"]
        machine = self.machine
        match description["kind"]:
            case "configfs":
                device = planned["device"]
                directory = (
                    f"/sys/kernel/config/{description['configfs']}/{device.removeprefix('/dev/')}"
                )
                if not machine.path(os.path.dirname(directory)).is_dir():
                    raise MachineError(
                        f"{os.path.dirname(directory)} does not exist; is configfs"
                        " mounted, and the module loaded?"
                    )
                machine.make_directory(directory)
                for attribute, value in [*driver["attributes"].items(), ("power", "1")]:
                    try:
                        machine.path(f"{directory}/{attribute}").write_text(value)
                    except OSError as error:
                        raise MachineError(
                            f"{directory}/{attribute} cannot be set to {value}: {error.strerror}"
                        ) from error
                self._check_attributes(directory, driver)
            case "module":
                device = planned["device"]
            case "loop":
                file = machine.state_dir / f"disk-{letter.lower()}"
                machine.make_file(file, self.plan["config"]["disk"]["size"])
                device = machine.attach_loop(file)
            case "command":
                disk = self.plan["config"]["disk"]
                fields = {
                    "id": description.get("first_id", 0) + planned["index"],
                    "queues": disk["queues"],
                    "depth": disk["depth"],
                    "size_mib": disk["size"] >> 20,
                }
                start, stop = (
                    [word.format(**fields) for word in description[key]]
                    for key in ("start", "stop")
                )
                machine.start(start, stop)
                device = planned["device"]
            case "pci":
                if letter != self.letters[0]:
                    return  # The measurement binds the device.
                device = self._bind(letter)
            case "device":
                device = planned["device"]
        self._wait_for(device)
        self.device[letter] = device
        if planned["made"]:
            check_device(machine, device, [device])

    def _check_attributes(self, directory: str, driver: Mapping[str, Any]) -> None:
        """Refuses a disk whose settings are not in force: the driver may have limited them."""
        for attribute, value in driver["attributes"].items():
            found = self.machine.read(f"{directory}/{attribute}")
            # null_blk shows no, rnull 0; a poll_queues of 0 may stay.
            if found is not None and found.lower().rstrip("\n") not in (
                value,
                {"1": "y", "0": "n"}.get(value),
            ):
                raise MachineError(
                    f"{driver['name']}: {attribute} is {found}, though {value} was written; the"
                    " disks of both drivers have to be alike"
                )

    def _wait_for(self, device: str, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not self.machine.path(device).exists():
            if time.monotonic() > end:
                raise MachineError(f"{device} did not appear within {seconds:.0f} seconds")
            time.sleep(0.05)

    def _bind(self, letter: str) -> str:
        driver = self.driver(letter)
        address = driver["address"]
        for disk in pci_disks(self.machine, address):
            check_device(self.machine, disk, [disk])
        self.machine.bind(address, driver["description"]["pci_driver"])
        end = time.monotonic() + 30
        while not (found := pci_disks(self.machine, address)):
            if time.monotonic() > end:
                raise MachineError(f"PCI device {address} has no disk with {driver['name']}")
            time.sleep(0.1)
        if len(found) > 1:
            raise RefusedError(f"PCI device {address} has several disks: {', '.join(found)}")
        return found[0]

    def select(self, letter: str) -> str:
        """Returns the device to measure; binds it first if it is shared."""
        if self.shares_device(letter):
            self.device[letter] = self._bind(letter)
            self._wait_for(self.device[letter])
        return self.device[letter]
