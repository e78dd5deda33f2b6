# SPDX-License-Identifier: GPL-2.0
"""Reads the public table of 2023 that compares rnull with null_blk.

The table has one number for each cell and direction: the difference of rnull in percent.  It has
neither samples nor intervals.  A workload that does not read has 0.00 in the column of reads; such
a cell does not apply, and must not be averaged as if there were no difference.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from .db import DatabaseError

COLUMNS = (
    "jobs",
    "workload",
    "block_size",
    "relative_read_percent",
    "relative_write_percent",
    "c_read_miops",
    "c_write_miops",
)

#: The directions of each workload of fio.
DIRECTIONS = {
    "read": ("read",),
    "randread": ("read",),
    "write": ("write",),
    "randwrite": ("write",),
    "readwrite": ("read", "write"),
    "randrw": ("read", "write"),
}

UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}


@dataclass(frozen=True)
class Entry:
    """One direction of a cell."""

    jobs: int
    workload: str
    block_size: int
    direction: str
    percent: float  # of rnull relative to null_blk
    c_iops: float  # of null_blk


@dataclass(frozen=True)
class Summary:
    cells: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Table:
    """The cells of the table to which a direction applies."""

    rows: int
    entries: tuple[Entry, ...]
    #: How many numbers stand for a direction that the workload does not have.
    not_applicable: int

    def select(self, direction: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.direction == direction]

    def summary(self, direction: str) -> Summary:
        values = [entry.percent for entry in self.select(direction)]
        if not values:
            raise ValueError(f"the table has no cell that {direction}s")
        return Summary(len(values), sum(values) / len(values), min(values), max(values))


def parse_size(text: str) -> int:
    """Parses a block size as fio writes it: 4k, 1m, 512."""
    number, unit = (text[:-1], text[-1:].lower()) if text[-1:].isalpha() else (text, "")
    if not number.isdigit() or (unit and unit not in UNITS):
        raise ValueError(f"{text!r} is not a block size")
    return int(number) * UNITS.get(unit, 1)


def read(path: Path | str) -> Table:
    """Reads the table from a CSV file."""
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise DatabaseError(f"{path}: the columns are not {', '.join(COLUMNS)}")
            lines = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatabaseError(f"{path}: {error}") from error
    entries: list[Entry] = []
    seen = set()
    not_applicable = 0
    for number, line in enumerate(lines, 2):
        try:
            workload = line["workload"]
            if workload not in DIRECTIONS:
                raise ValueError(f"{workload!r} is not a workload")
            key = (int(line["jobs"]), workload, parse_size(line["block_size"]))
            if key in seen:
                raise ValueError("the cell is there twice")
            seen.add(key)
            for direction in ("read", "write"):
                percent = float(line[f"relative_{direction}_percent"])
                iops = 1e6 * float(line[f"c_{direction}_miops"])
                if direction in DIRECTIONS[workload]:
                    entries.append(Entry(*key, direction, percent, iops))
                elif percent or iops:
                    raise ValueError(f"{workload} has a number for a {direction}")
                else:
                    not_applicable += 1
        except (ValueError, TypeError) as error:
            raise DatabaseError(f"{path}:{number}: {error}") from error
    return Table(len(lines), tuple(entries), not_applicable)
