# SPDX-License-Identifier: GPL-2.0
"""The configuration: its keys with their defaults, and its layers.

The layers are the defaults, a preset, TOML files, and ``--set`` of the command line.  A later layer
wins.  The configuration remembers which layer each value is from.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any


class ConfigError(Exception):
    """The configuration is not usable; the message is for the user."""


UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_size(value: Any) -> int:
    """Returns a number of bytes, for "4K", "1M", 512."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)(?:i?b)?", str(value).strip().lower())
    if not match:
        raise ValueError(f"{value!r} is not a size such as 4K or 1M")
    return int(match[1]) * UNITS[match[2]]


def format_size(size: int) -> str:
    """Returns the shortest exact form of a number of bytes: "4k", "1m"."""
    for unit in "tgmk":
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def _integer(low: int, high: int | None = None) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} is not an integer")
        if value < low or high is not None and value > high:
            bound = f"at least {low}" if high is None else f"from {low} to {high}"
            raise ValueError(f"{value} is not {bound}")
        return value

    return check


def _number(low: float, high: float = float("inf")) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{value!r} is not a number")
        if not low <= value <= high:
            raise ValueError(f"{value} is not from {low} to {high}")
        return value

    return check


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def _choice(*choices: Any) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise ValueError(f"{value!r} is none of {', '.join(map(repr, choices))}")
        return value

    return check


def _either(*checks: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        reasons = []
        for each in checks:
            try:
                return each(value)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError(", and ".join(reasons))

    return check


def _list(check: Callable[[Any], Any], least: int = 1) -> Callable[[Any], list[Any]]:
    def check_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            value = [value]
        if len(value) < least:
            raise ValueError("the list is empty")
        result = [check(each) for each in value]
        if len(set(map(str, result))) != len(result):
            raise ValueError(f"the list has a value twice: {value}")
        return result

    return check_list


def _size(value: Any) -> int:
    size = parse_size(value)
    if size <= 0:
        raise ValueError("the size is 0")
    return size


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a table")
    for key, each in value.items():
        if not isinstance(each, (str, int, bool)):
            raise ValueError(f"{key} is neither a text nor a number")
    return value


@dataclass(frozen=True)
class Key:
    default: Any
    check: Callable[[Any], Any]
    help: str


METRICS = ("iops", "p50", "p99", "p99.9")
RW = ("read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim")

_DRIVER = {
    "driver": Key("", _text, "a description: its name, or the path of a TOML file"),
    "name": Key("", _text, "the name in the report; default: that of the description"),
    "device": Key("", _text, "the block device, for descriptions of one that exists"),
    "control_device": Key("", _text, "the device of the control, if A has a device"),
    "address": Key("", _text, "the PCI address, for drivers of PCI devices"),
    "attributes": Key({}, _table, "attributes of the disk, in addition to those of disk.*"),
    "parameters": Key({}, _table, "parameters of the module, in addition"),
}

KEYS: dict[str, Key] = {
    "name": Key("", _text, "what the report calls the run; default: the names of the drivers"),
    "tags": Key([], _list(_text, 0), "words to find the run by"),
    "seed": Key(0, _integer(0), "of all random choices; 0: drawn when the plan is made"),
    "boots": Key(5, _integer(1), "boots; fewer than three give no interval"),
    "cycles": Key(3, _integer(1), "cycles of each cell in each boot"),
    "control": Key(True, _bool, "measure a second instance of A in each cycle"),
    "margin": Key(0.01, _number(1e-6, 1), "equivalence: the drivers differ by less than this"),
    "alpha": Key(0.05, _number(1e-6, 0.5), "level of tests, and false discovery rate"),
    "headline.metric": Key("iops", _choice(*METRICS), "what is compared, see headline.beside"),
    "headline.test": Key("t", _choice("t"), "the t-interval over boots"),
    "headline.beside": Key(
        ["p50", "p99"],
        _list(_choice(*METRICS), 0),
        "what is compared beside it, by the same rules; p50, p99, p99.9: percentiles of latency",
    ),
    **{f"drivers.{side}.{key}": value for side in "AB" for key, value in _DRIVER.items()},
    "disk.size": Key(4 << 30, _size, "size of a disk that is made"),
    "disk.memory": Key(True, _bool, "the disk keeps its data in memory"),
    "disk.completion": Key(
        "direct", _choice("direct", "softirq", "timer"), "how the disk completes requests"
    ),
    "disk.completion_ns": Key(10000, _integer(0), "delay of a request with completion by timer"),
    "disk.queues": Key(
        "cpus", _either(_choice("cpus"), _integer(1)), "hardware queues; cpus: one for each CPU"
    ),
    "disk.poll_queues": Key(0, _integer(0), "polled hardware queues"),
    "disk.depth": Key(128, _integer(1, 10240), "requests in flight on a hardware queue"),
    "disk.block_size": Key(4096, _size, "logical block size"),
    "disk.discard": Key(False, _bool, "the disk supports discard"),
    "disk.zoned": Key(False, _bool, "the disk is zoned"),
    "disk.overwrite": Key([], _list(_text, 0), "devices that exist whose data may be destroyed"),
    "disk.fill": Key(True, _bool, "fill the disk before, and check what was written"),
    "disk.reload": Key(
        "boot", _choice("boot", "cycle"), "make the disks once in a boot, or for each cycle"
    ),
    "matrix.jobs": Key([1, 2, 6], _list(_integer(1, 4096)), "processes that submit I/O"),
    "matrix.rw": Key(["randread", "randwrite"], _list(_choice(*RW)), "kinds of I/O, as in fio"),
    "matrix.bs": Key(
        [4 << 10, 32 << 10, 256 << 10, 1 << 20, 16 << 20], _list(_size), "length of an I/O"
    ),
    "matrix.depth": Key([1, 8, 32, 128], _list(_integer(1, 65536)), "I/O in flight of each job"),
    "matrix.cells": Key(
        [], _list(_text, 0), "cells such as randread-4k-d8-j2, instead of all combinations"
    ),
    "matrix.unfit": Key(
        "skip", _choice("skip", "refuse"), "what to do with cells that the machine cannot run"
    ),
    "load.fio": Key("fio", _text, "the program"),
    "load.engine": Key("io_uring", _choice("io_uring", "libaio", "psync"), "how I/O is submitted"),
    "load.fixed_buffers": Key(True, _bool, "io_uring: register the buffers"),
    "load.registered_files": Key(True, _bool, "io_uring: register the file"),
    "load.polled": Key(False, _bool, "io_uring: poll for completions"),
    "load.direct": Key(True, _bool, "bypass the page cache"),
    "load.batch": Key(1, _integer(1), "I/O that are submitted, and reaped, together"),
    "load.read_percent": Key(50, _integer(0, 100), "part of reads, for rw and randrw"),
    "load.runtime": Key(2.5, _number(0.05, 3600), "seconds that are measured"),
    "load.ramp": Key(0.5, _number(0, 3600), "seconds before that are not"),
    "load.time_limit": Key(30.0, _number(1, 3600), "seconds that fio may take beyond these"),
    "load.pin": Key(True, _bool, "each job has a CPU of its own"),
    "load.huge_pages": Key(
        "auto", _choice("auto", True, False), "buffers in huge pages; auto: if the kernel can"
    ),
    "load.size": Key(0, parse_size, "the part of the disk that is used; 0: all"),
    "load.arguments": Key([], _list(_text, 0), "further arguments of fio"),
    "gate.spin": Key(10.0, _number(0, 1000), "per cent that a loop may be slower than at its best"),
    "gate.steal": Key(1.0, _number(0, 100), "per cent of the CPUs' time taken by the hypervisor"),
    "gate.busy": Key(10.0, _number(0, 100), "per cent of the CPUs' time used by other programs"),
    "gate.window": Key(0.5, _number(0.05, 60), "seconds of a measurement of the gate"),
    "gate.wait": Key(120.0, _number(0, 86400), "seconds to wait for a quiet machine"),
    "gate.attempts": Key(5, _integer(1), "how often a cycle is run until it is given up"),
    "machine.scheduler": Key("none", _text, "I/O scheduler; keep: as it is"),
    "machine.iostats": Key(0, _either(_integer(0, 1), _choice("keep")), "accounting of the disk"),
    "machine.wbt_lat_usec": Key(
        0, _either(_integer(-1), _choice("keep")), "throttling of write-back; 0: none"
    ),
    "machine.governor": Key("performance", _text, "governor of the CPUs; keep: as it is"),
    "machine.boost": Key("off", _choice("off", "on", "keep"), "boost of the CPUs"),
    "machine.clock_khz": Key(
        "keep", _either(_integer(1), _choice("base", "keep")), "a fixed clock; base: the nominal"
    ),
    "machine.settle": Key(0.0, _number(0, 3600), "seconds to wait before the first cycle"),
    "covariates.pagemap": Key(True, _bool, "physical pages of the load's buffers"),
    "covariates.dmesg": Key(True, _bool, "lines of the kernel log"),
}

LISTS = {key for key, value in KEYS.items() if isinstance(value.default, list)}
TABLES = {key for key, value in KEYS.items() if isinstance(value.default, dict)}


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns a nested table as dotted keys; the tables that are values stay tables."""
    result = {}
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict) and name not in TABLES:
            result |= flatten(value, name + ".")
        else:
            result[name] = value
    return result


def toml_value(value: Any) -> str:
    """Returns a value in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, dict):
        if not value:
            return "{}"
        pairs = (f"{toml_value(key)} = {toml_value(each)}" for key, each in value.items())
        return "{ " + ", ".join(pairs) + " }"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    escaped = "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in text)
    return f'"{escaped}"'


class Config:
    """The values of all keys, and which layer each is from."""

    def __init__(self) -> None:
        self.values = {key: value.default for key, value in KEYS.items()}
        self.source = dict.fromkeys(KEYS, "default")

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def section(self, prefix: str) -> dict[str, Any]:
        """Returns the keys below a prefix, without it."""
        start = prefix + "."
        return {
            key.removeprefix(start): value
            for key, value in self.values.items()
            if key.startswith(start)
        }

    def apply(self, table: Mapping[str, Any], source: str) -> None:
        """Adds a layer: nested tables, as TOML has them."""
        for key, value in flatten(table).items():
            self._set(key, value, source)

    def override(self, assignment: str) -> None:
        """Adds ``key=value`` of the command line; the value is TOML, or a text without quotes."""
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals:
            raise ConfigError(f"--set {assignment}: there is no '='")
        parent = key.rpartition(".")[0]
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
            if key in LISTS and "," in value:
                value = [_scalar(each) for each in value.split(",")]
        if key not in KEYS and parent in TABLES:
            value = {**self.values[parent], key.rpartition(".")[2]: value}
            key = parent
        self._set(key, value, "command line")

    def _set(self, key: str, value: Any, source: str) -> None:
        if key not in KEYS:
            from difflib import get_close_matches

            near = get_close_matches(key, KEYS, 1)
            hint = f"; is it {near[0]}?" if near else ""
            raise ConfigError(f"{source}: there is no key {key}{hint}")
        try:
            self.values[key] = KEYS[key].check(value)
        except ValueError as error:
            raise ConfigError(f"{source}: {key}: {error}") from error
        self.source[key] = source

    def dump(self) -> str:
        """Returns the effective configuration as TOML, with the layer of each value."""
        lines = ["# The effective configuration of blkcompare."]
        section = ""
        for key in sorted(KEYS, key=lambda key: (key.count("."), list(KEYS).index(key))):
            parent, _, name = key.rpartition(".")
            if parent != section:
                lines += ["", f"[{parent}]"]
                section = parent
            # A long list does not shift the comments of all other lines.
            left = f"{name} = {toml_value(self.values[key])}"
            lines.append(f"{left:32}  # {KEYS[key].help} ({self.source[key]})")
        return "\n".join(lines) + "\n"


def _scalar(text: str) -> Any:
    text = text.strip()
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a TOML file of the user."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def packaged(kind: str) -> dict[str, str]:
    """Returns the text of each TOML file in a directory of the package, by name."""
    directory = resources.files("blkcompare").joinpath(kind)
    return {
        entry.name.removesuffix(".toml"): entry.read_text()
        for entry in sorted(directory.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    }


def load_config(preset: str | None, files: list[Path], overrides: list[str]) -> Config:
    """Builds the configuration from its layers.

    A file can name its preset itself, by ``preset`` at its top.  That of the command line wins.
    """
    tables = [(path, read_toml(path)) for path in files]
    for _, table in tables:
        named = table.pop("preset", None)
        preset = preset or named
    config = Config()
    if preset:
        presets = packaged("presets")
        if preset not in presets:
            raise ConfigError(f"there is no preset {preset}; there are {', '.join(presets)}")
        config.apply(tomllib.loads(presets[preset]), f"preset {preset}")
    for path, table in tables:
        config.apply(table, path.name)
    for assignment in overrides:
        config.override(assignment)
    return config
