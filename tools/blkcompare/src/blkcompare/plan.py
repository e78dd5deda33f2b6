# SPDX-License-Identifier: GPL-2.0
"""The plan: made from the configuration before anything is measured, and not changed after that."""

from __future__ import annotations

import hashlib
import json
import random
import re
import secrets
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from . import covariates, disks, fio, tune
from .config import KEYS, RW, Config, ConfigError, format_size, parse_size
from .machine import Machine, write_durably

FORMAT = 1
#: Seconds of a measurement beside the load itself: fio starts, and the covariates are read.
OVERHEAD = 0.6
#: Bytes per second at which a disk is filled and checked, for the estimate only.
FILL_RATE = 300 << 20
#: Memory that is left to everything else.
SPARE = 256 << 20
WRITING = {"write", "randwrite", "rw", "randrw", "trim", "randtrim"}
CELL = re.compile(r"([a-z]+)-(\d+[kmgt]?)-d(\d+)-j(\d+)")


def cell_name(axes: Mapping[str, Any]) -> str:
    return f"{axes['rw']}-{format_size(axes['bs'])}-d{axes['depth']}-j{axes['jobs']}"


def parse_cell(name: str) -> dict[str, Any]:
    """Returns the axes of a cell such as randread-4k-d8-j2."""
    match = CELL.fullmatch(name.lower())
    if not match or match[1] not in RW:
        raise ConfigError(f"{name} is not a cell such as randread-4k-d8-j2")
    axes = {
        "jobs": int(match[4]),
        "rw": match[1],
        "bs": parse_size(match[2]),
        "depth": int(match[3]),
    }
    if not all(axes.values()):
        raise ConfigError(f"{name} has an axis of 0")
    return axes


def all_cells(config: Config) -> list[dict[str, Any]]:
    """Returns the cells that the configuration asks for, as name and axes."""
    matrix = config.section("matrix")
    if matrix["cells"]:
        wanted = [parse_cell(name) for name in matrix["cells"]]
    else:
        wanted = [
            dict(zip(("jobs", "rw", "bs", "depth"), values, strict=True))
            for values in product(matrix["jobs"], matrix["rw"], matrix["bs"], matrix["depth"])
        ]
    cells = {cell_name(axes): axes for axes in wanted}
    return [{"name": name, "axes": axes} for name, axes in cells.items()]


def _unfit(axes: Mapping[str, Any], config: Config, limits: Mapping[str, Any]) -> str | None:
    """Returns why a cell cannot be run here, or None if it can."""
    if config["load.pin"] and axes["jobs"] > limits["cpus"]:
        return f"{axes['jobs']} jobs with a CPU each, of which there are {limits['cpus']}"
    if config["load.engine"] == "psync" and axes["depth"] > 1:
        return "psync has a depth of 1"
    if limits["disk"] and axes["bs"] > limits["disk"]:
        return f"the disk has {format_size(limits['disk'])}"
    if axes["bs"] % limits["block"]:
        return f"the disk has blocks of {limits['block']} bytes"
    if "trim" in axes["rw"] and limits["made"] and not config["disk.discard"]:
        return "disk.discard is off"
    needed = limits["disk_memory"] + fio.buffer_bytes(axes, limits["huge"]) + SPARE
    if needed > limits["memory"]:
        return (
            f"{needed / 2**30:.1f} GiB of memory, of which {limits['memory'] / 2**30:.1f} are free"
        )
    return None


def _fit(
    cells: list[dict[str, Any]], config: Config, limits: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Splits the cells into those that can be run, and sentences about the others."""
    kept, reasons = [], {}
    for cell in cells:
        why = _unfit(cell["axes"], config, limits)
        if why is None:
            kept.append(cell)
        else:
            reasons.setdefault(why, []).append(cell["name"])
    sentences = [
        f"{len(names)} of {len(cells)} cells are not measured, because the machine cannot run them"
        f" ({why}): {', '.join(names)}"
        for why, names in reasons.items()
    ]
    if sentences and config["matrix.unfit"] == "refuse":
        raise ConfigError("; ".join(sentences))
    if not kept:
        raise ConfigError("the machine can run none of the cells: " + "; ".join(reasons))
    return kept, sentences


def make_plan(config: Config, machine: Machine, seed: int | None = None) -> dict[str, Any]:
    """Makes the plan from the configuration, for this machine."""
    usable = covariates.cpus(machine)
    sides, notes = {}, []
    for side in "AB":
        sides[side], said = disks.plan_driver(config, side, len(usable))
        notes += [f"{side}: {sentence}" for sentence in said]
    _check_together(sides)
    control = config["control"]
    letters = "ABC" if control else "AB"
    devices = disks.planned_devices(sides, letters)
    for letter, planned in devices.items():
        if sides[disks.SIDE[letter]]["description"]["kind"] == "device":
            planned["identity"] = disks.identity(machine, planned["device"])
    if control and devices["C"]["device"] == devices["A"]["device"] and not devices["A"]["made"]:
        notes.append(
            "the control is the device of A itself, so it shows the noise of the machine,"
            " but not how much two disks of one driver differ"
        )
    made = all(planned["made"] for planned in devices.values())

    load = config.section("load")
    size = tune.huge_page_size(machine)
    if load["huge_pages"] == "auto":
        load["huge_pages"] = size is not None
    elif load["huge_pages"] and size is None:
        raise ConfigError("load.huge_pages: the kernel has no huge pages")
    disk_memory = sum(
        config["disk.size"] for letter in letters if _in_memory(sides[disks.SIDE[letter]], config)
    )
    limits = {
        "cpus": len(usable),
        "memory": covariates.memory(machine).get("MemAvailable", 0) << 10,
        "disk_memory": disk_memory,
        "disk": config["disk.size"] if made else 0,
        "block": config["disk.block_size"] if made else 512,
        "huge": size if load["huge_pages"] else None,
        "made": made,
    }
    if disk_memory + SPARE > limits["memory"]:
        raise ConfigError(
            f"{len(letters)} disks of {format_size(config['disk.size'])} take"
            f" {disk_memory / 2**30:.1f} GiB of memory, and {limits['memory'] / 2**30:.1f} GiB are"
            " free; set disk.size to less"
        )
    cells, not_measured = _fit(all_cells(config), config, limits)

    writing = any(cell["axes"]["rw"] in WRITING for cell in cells)
    fill = config["disk.fill"] and _worth_filling(sides, devices, config)
    if not made:
        foreign = [
            p["device"]
            for p in devices.values()
            if not p["made"] and p["device"] not in config["disk.overwrite"]
        ]
        if writing and foreign:
            raise ConfigError(
                f"the plan writes to {', '.join(sorted(set(foreign)))}, whose data would be lost;"
                " name what may be lost in disk.overwrite, or measure cells that read only"
            )
        if foreign and fill:
            fill = False
            notes.append("the devices are not filled, because disk.overwrite does not name them")
    absent = covariates.describe_absent(machine)
    values = {key: config[key] for key in KEYS}
    plan = {
        "format": FORMAT,
        "name": config["name"] or f"{sides['A']['name']} and {sides['B']['name']}",
        "tags": config["tags"],
        "seed": seed or config["seed"] or secrets.randbits(31) | 1,
        "drivers": sides,
        "devices": devices,
        "overwrite": config["disk.overwrite"],
        "writes": writing or fill,
        "fill": fill,
        "cells": cells,
        "cycles": config["cycles"],
        "boots": config["boots"],
        "control": control,
        "margin": config["margin"],
        "alpha": config["alpha"],
        "headline": config.section("headline"),
        "gate": config.section("gate"),
        "cpus": usable,
        "config": _nested(values) | {"load": load},
        "config_hash": config_hash(config),
        "not_measured": not_measured
        + [f"not recorded, because the machine lacks it: {', '.join(absent)}"] * bool(absent),
        "notes": notes,
    }
    if config["boots"] < 3:
        plan["notes"].append("with fewer than three boots there is no interval and no verdict")
    plan["changes"] = changes(machine, plan)
    plan["estimate"] = estimate(plan)
    return plan


def make_experiment(
    config: Config, machine: Machine, design: Mapping[str, Any], seed: int | None = None
) -> dict[str, Any]:
    """Makes the plan of an experiment with two arms, which come by lot over cycles or boots.

    A cell is measured in each arm, under a name of its own.
    """
    config.apply(design["set"], "the experiment")
    seed = seed or config["seed"] or secrets.randbits(31) | 1
    plans = []
    for arm in design["arms"]:
        own = Config()
        own.values |= config.values
        own.apply(arm["set"], f"the arm {arm['name']}")
        plans.append(make_plan(own, machine, seed))
    made = plans[0]

    def joined(key: str) -> list[str]:
        result = []
        for arm, each in zip(design["arms"], plans, strict=True):
            for text in each[key]:
                everywhere = all(text in other[key] for other in plans)
                result.append(text if everywhere else f"{arm['name']}: {text}")
        return list(dict.fromkeys(result))

    for key in ("notes", "not_measured", "changes"):
        made[key] = joined(key)
    made["name"] += f", experiment: {design['hypothesis']}"
    made["cells"] = [
        {
            "name": f"{cell['name']}@{arm['name']}",
            "axes": {**cell["axes"], "arm": arm["name"]},
            "arm": index,
        }
        for index, (arm, each) in enumerate(zip(design["arms"], plans, strict=True))
        for cell in each["cells"]
    ]
    made["fill"] = any(each["fill"] for each in plans)
    made["writes"] = any(each["writes"] for each in plans)
    made["arms"] = {key: design[key] for key in ("hypothesis", "text", "predicts", "quiet", "over")}
    made["arms"]["arms"] = design["arms"]
    made["arms"]["configs"] = [each["config"] for each in plans]
    made["config_hash"] = config_hash(config, design)
    if design["over"] == "boots":
        by_boot = [boot % 2 for boot in range(made["boots"])]
        random.Random(f"{seed}/arms").shuffle(by_boot)
        made["arms"]["by_boot"] = by_boot
        total = sum(plans[arm]["estimate"]["boot"] for arm in by_boot)
        boot = max(each["estimate"]["boot"] for each in plans)
    else:
        boot = sum(each["estimate"]["boot"] for each in plans)
        total = boot * made["boots"]
    made["estimate"] |= {"boot": boot, "total": total}
    return made


def arm_of_boot(plan: Mapping[str, Any], round_: int) -> int | None:
    """Returns the arm that a boot has, or None where each of its cycles has an arm."""
    by_boot = plan.get("arms", {}).get("by_boot")
    return by_boot[round_ - 1] if by_boot else None


def config_of(plan: Mapping[str, Any], arm: int | None) -> Mapping[str, Any]:
    """Returns the configuration of an arm; without an experiment, of the plan."""
    return plan["config"] if arm is None else plan["arms"]["configs"][arm]


def config_hash(config: Config, design: Mapping[str, Any] | None = None) -> str:
    """Returns a hash of all values, by which a plan is recognised when it is resumed."""
    text = json.dumps([config.values, design] if design else config.values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in values.items():
        table = result
        *parents, name = key.split(".")
        for parent in parents:
            table = table.setdefault(parent, {})
        table[name] = value
    return result


def _check_together(sides: Mapping[str, Any]) -> None:
    """Refuses two drivers that cannot be loaded at the same time."""
    a, b = (sides[side]["description"] for side in "AB")
    same_module = a.get("module") and a.get("module") == b.get("module")
    if same_module and a.get("description") != b.get("description"):
        raise ConfigError(
            f"{sides['A']['name']} and {sides['B']['name']} have the same module {a['module']}, so"
            " they cannot be compared in one boot; take the driver under its own name"
        )
    for key in ("parameters",):
        if same_module and sides["A"][key] != sides["B"][key]:
            raise ConfigError(f"one module {a['module']} cannot have two sets of parameters")


def _in_memory(side: Mapping[str, Any], config: Config) -> bool:
    description = side["description"]
    if description.get("memory"):
        return True
    attribute = description.get("disk", {}).get("memory", {}).get("attribute")
    return side["attributes"].get(attribute) == "1"


def _worth_filling(sides: Mapping[str, Any], devices: Mapping[str, Any], config: Config) -> bool:
    """Whether the disks keep data: others cannot be checked, and need not be filled."""
    return all(
        _in_memory(sides[disks.SIDE[letter]], config)
        or sides[disks.SIDE[letter]]["description"]["kind"] in ("loop", "device", "pci")
        for letter in devices
    )


def estimate(plan: Mapping[str, Any]) -> dict[str, float]:
    """Returns how long the plan takes, in seconds."""
    load, gate = plan["config"]["load"], plan["gate"]
    legs = 6 if plan["control"] else 4
    leg = load["ramp"] + load["runtime"] + OVERHEAD
    if any(disk["device"] == plan["drivers"]["A"]["address"] for disk in plan["devices"].values()):
        leg += 2
    cycle = legs * leg + 2 * (gate["window"] + 0.2)
    fill = len(plan["devices"]) * plan["config"]["disk"]["size"] / FILL_RATE if plan["fill"] else 0
    if plan["config"]["disk"]["reload"] == "cycle":
        cycle += fill
        fill = 0
    boot = fill + plan["config"]["machine"]["settle"] + 1
    boot += cycle * len(plan["cells"]) * plan["cycles"]
    return {"cycle": round(cycle, 1), "boot": round(boot), "total": round(boot * plan["boots"])}


def changes(machine: Machine, plan: Mapping[str, Any]) -> list[str]:
    """Returns sentences that say what a run changes on the machine."""
    said = []
    for letter, planned in plan["devices"].items():
        driver = plan["drivers"][disks.SIDE[letter]]
        description = driver["description"]
        role = " (control)" if letter == "C" else ""
        module = description.get("module")
        if module and not machine.module_loaded(module):
            words = [f"{key}={value}" for key, value in driver["parameters"].items()]
            sentence = f"loads the module {' '.join([module, *words])}"
            if sentence not in said:
                said.append(sentence)
        match description["kind"]:
            case "configfs" | "module" | "command":
                made = f"makes {planned['device']}"
            case "loop":
                made = f"makes a loop device of the file {machine.state_dir}/disk-{letter.lower()}"
            case "pci":
                made = (
                    f"binds the PCI device {planned['device']} to {description['pci_driver']}"
                    f" for each measurement"
                )
            case "device":
                made = f"uses {planned['device']} as it is"
        settings = " ".join(f"{key}={value}" for key, value in driver["attributes"].items())
        said.append(f"{made} for {driver['name']}{role}" + (f": {settings}" if settings else ""))
    existing = sorted({p["device"] for p in plan["devices"].values() if not p["made"]})
    if existing and plan["writes"]:
        said.append(f"DESTROYS THE DATA on {', '.join(existing)}")
    if plan["fill"]:
        said.append("fills each disk, and checks what was written")
    for setting in tune.queue_settings(plan["config"], "(disk)"):
        said.append(f"sets queue/{setting.path.rpartition('/')[2]} of the disks to {setting.value}")
    for setting in tune.cpu_settings(machine, plan["config"]):
        said.append(f"sets {setting.path} from {machine.read(setting.path)} to {setting.value}")
    if plan["config"]["load"]["huge_pages"]:
        size = tune.huge_page_size(machine) or 0
        pages = max(fio.huge_pages_needed(cell["axes"], size) for cell in plan["cells"])
        said.append(f"reserves {pages} huge pages of {format_size(size)}")
    return said


def duration(seconds: float) -> str:
    """Returns a time for people: "1 h 05 min"."""
    seconds = round(seconds)
    if seconds < 90:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _beside(plan: Mapping[str, Any]) -> str:
    names = [name for name in plan["headline"]["beside"] if name != plan["headline"]["metric"]]
    return f", and beside it of {', '.join(names)}" if names else ""


def describe(plan: Mapping[str, Any]) -> str:
    """Returns the plan in words."""
    a, b = (plan["drivers"][side] for side in "AB")
    time = plan["estimate"]
    lines = [
        f"Plan: {plan['name']}",
        f"  A is {a['name']} ({a['description'].get('summary', a['driver'])}),",
        f"  B is {b['name']} ({b['description'].get('summary', b['driver'])}).",
        f"  {_count(len(plan['cells']), 'cell')}, {_count(plan['cycles'], 'cycle')} of each in each"
        f" of {_count(plan['boots'], 'boot')}; each cycle measures "
        + ("A, B and a second disk of A, the control" if plan["control"] else "A and B")
        + ", in an order by lot and back.",
        f"  Headline: t-interval over boots of {plan['headline']['metric']}{_beside(plan)};"
        f" equivalence within {100 * plan['margin']:g} %; level {100 * plan['alpha']:g} %.",
        f"  A cycle counts if the machine is quiet before and after it: spin"
        f" {plan['gate']['spin']:g} %, busy {plan['gate']['busy']:g} %, steal"
        f" {plan['gate']['steal']:g} %.",
        f"  Time: {duration(time['boot'])} for a boot, {duration(time['total'])} in all, and more"
        " if the machine is not quiet.",
        "What a run does to this machine, and undoes at its end:",
        *(f"  - {sentence}" for sentence in plan["changes"]),
    ]
    if "arms" in plan:
        lines[3:3] = [
            f"  Each cell has two arms, in an order by lot over the {plan['arms']['over']}:",
            *(f"    {arm['name']}: {arm['text']}" for arm in plan["arms"]["arms"]),
        ]
    if plan["not_measured"]:
        lines += ["Not measured:", *(f"  - {sentence}" for sentence in plan["not_measured"])]
    if plan["notes"]:
        lines += ["Note:", *(f"  - {sentence}" for sentence in plan["notes"])]
    return "\n".join(lines)


def save(plan: Mapping[str, Any], path: Path) -> None:
    write_durably(path, json.dumps(plan, indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> dict[str, Any]:
    """Reads a plan that was made before."""
    try:
        plan = json.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not a plan: {error}") from error
    if not isinstance(plan, dict) or plan.get("format") != FORMAT:
        raise ConfigError(f"{path} is not a plan of this version of blkcompare")
    return plan
