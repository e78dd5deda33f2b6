# SPDX-License-Identifier: GPL-2.0
"""A measurement: what every function cost in every run, kept as CSV, asked by row, by driver, by class."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from classes import ABSTRACTION, DRIVER, class_of
from symbols import SymbolTable

COUNTS = ["instructions", "string", "locked", "calls", "indirect"]
HEADER = ["row", "driver", "boot", "turn", "ios", "size", "class", "symbol", *COUNTS]
MEMORY = "memory"  # the row of the memory figures: symbol is what was measured, instructions are bytes
SHARING = "sharing"  # the row of shared cache lines: class is what was done, symbol who wrote them, instructions how many


@dataclass(frozen=True)
class Run:
    """One run of a row on a driver."""

    row: str
    driver: str
    boot: int
    turn: int


@dataclass
class Cost:
    """What a function cost in a run; an iteration of a repeated string instruction counts as string alone."""

    instructions: float = 0
    string: float = 0
    locked: float = 0
    calls: float = 0
    indirect: float = 0

    def add(self, kind, count):
        """Adds executions of an instruction of a kind."""
        if kind == "S":
            self.string += count
            return
        self.instructions += count
        self.locked += count if kind == "L" else 0
        self.calls += count if kind in "CI" else 0
        self.indirect += count if kind in "IJ" else 0


def costs_of(region, table):
    """(class, symbol) -> Cost, of what the plugin counted in a region."""
    costs = defaultdict(Cost)
    for address, kind, count in region.instructions:
        symbol = table.at(address)
        costs[class_of(symbol), symbol.readable].add(kind, count)
    return costs


def lines_of(boots, kernel_map):
    """The lines of the CSV for the boots."""
    for number, boot in enumerate(boots):
        table = SymbolTable(kernel_map, boot.symbols)
        for region in boot.regions:
            head = [region.row, region.driver, number, region.turn, region.ios, region.size]
            for (kind, symbol), cost in sorted(costs_of(region, table).items()):
                yield [*head, kind, symbol, *(getattr(cost, name) for name in COUNTS)]
        for (driver, what), size in boot.memory.items():
            yield [MEMORY, driver, number, 0, 1, 0, "", what, size, 0, 0, 0, 0]


class Measurement:
    """All of it; costs are per I/O, the median of the runs."""

    def __init__(self, path):
        """Of the CSV file."""
        self.runs = defaultdict(dict)  # Run -> (class, symbol) -> Cost per I/O
        self.memory = {}  # (what, driver) -> bytes
        self.sharing = defaultdict(dict)  # (what, driver) -> who wrote -> cache lines
        with open(path, encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if line["row"] == MEMORY:
                    self.memory.setdefault((line["symbol"], line["driver"]), float(line["instructions"]))
                    continue
                if line["row"] == SHARING:
                    self.sharing[line["class"], line["driver"]][line["symbol"]] = int(line["instructions"])
                    continue
                run = Run(line["row"], line["driver"], int(line["boot"]), int(line["turn"]))
                cost = Cost(*(float(line[name]) / int(line["ios"]) for name in COUNTS))
                self.runs[run][line["class"], line["symbol"]] = cost

    @property
    def rows(self):
        """The names of the rows, in the order in which they ran."""
        return list(dict.fromkeys(run.row for run in self.runs))

    def runs_of(self, row, driver):
        """The runs of a row on a driver."""
        return [run for run in self.runs if (run.row, run.driver) == (row, driver)]

    def of_run(self, run, count="instructions", classes=None):
        """One of COUNTS in a run, of some classes or of all."""
        return sum(getattr(cost, count) for (kind, _), cost in self.runs[run].items() if not classes or kind in classes)

    def get(self, row, driver, count="instructions", classes=None):
        """One of COUNTS, or None if the driver does not do the row."""
        found = [self.of_run(run, count, classes) for run in self.runs_of(row, driver)]
        return median(found) if found else None

    def own(self, row, driver):
        """The instructions of driver and abstraction together."""
        return self.get(row, driver, "instructions", (DRIVER, ABSTRACTION))

    def symbols(self, row, driver, count="instructions"):
        """(class, symbol) -> one of COUNTS."""
        runs = self.runs_of(row, driver)
        keys = {key for run in runs for key in self.runs[run]}
        return {key: median(getattr(self.runs[run].get(key, Cost()), count) for run in runs) for key in keys}
