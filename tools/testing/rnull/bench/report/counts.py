# SPDX-License-Identifier: GPL-2.0
"""What a boot has left behind, read: its regions with their counts, the symbols of its modules, the memory figures."""

from dataclasses import dataclass, field


@dataclass
class Region:
    """One run of load/load, as the plugin counted it."""

    row: str
    driver: str
    turn: int  # the how manieth device of the boot
    ios: int
    size: int  # of an I/O, in bytes
    instructions: list = field(default_factory=list)  # (address, kind, count)
    writes: list = field(default_factory=list)  # (address, of the last call, cache line, mask of vCPUs)


@dataclass
class Boot:
    """One guest from power-on to power-off."""

    regions: list
    symbols: list  # (address, name, module or "")
    memory: dict  # (driver, what) -> bytes
    failures: list  # lines
    lacking: list  # (driver, row, attribute that the driver does not have)


def read_output(path):
    """What the guest's script printed."""
    boot = Boot([], [], {}, [], [])
    driver, turn, finished = "", 0, False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for words in (line.split() for line in lines):
            match words:
                case ["driver", driver, number]:
                    turn = int(number)
                case ["region", row, ios, size, _]:
                    values = [int(word.split("=")[1]) for word in (ios, size)]
                    boot.regions.append(Region(row, driver, turn, *values))
                case ["memory", who, what, hundredths]:
                    boot.memory[who, what] = int(hundredths) / 100
                case ["symbol", address, _, name, *module]:
                    boot.symbols.append((int(address, 16), name, module[0].strip("[]") if module else ""))
                case ["lacks", who, row, attribute]:
                    boot.lacking.append((who, row, attribute))
                case ["bench:", "done"]:
                    finished = True
                case ["failed", *_] | ["load", *_]:
                    boot.failures.append(" ".join(words))
    if not finished:
        boot.failures.append("the guest's script did not come to its end")
    return boot


def read_counts(path, regions):
    """What the plugin wrote, into the regions it belongs to; the number of regions it wrote."""
    number, region = 0, None
    with open(path, encoding="ascii") as lines:
        for line in lines:
            kind, *words = line.split()
            if kind == "region":
                region = regions[number] if number < len(regions) else None
                number += 1
            elif kind == "i" and region:
                region.instructions.append((int(words[0], 16), words[1], int(words[2])))
            elif kind == "w" and region:
                region.writes.append(tuple(int(word, 16) for word in words))
    return number


def read_boot(output, counts):
    """A boot from its two files."""
    boot = read_output(output)
    number = read_counts(counts, boot.regions)
    if number != len(boot.regions):
        boot.failures.append(f"{number} regions were counted, {len(boot.regions)} were announced")
    return boot
