# SPDX-License-Identifier: GPL-2.0
"""A measurement: what every function cost in every run, as CSV, by row, by driver, by class.

The CSV file is written from what the guests left: what the guest's script printed, what the plugin
counted.
"""

import csv
import sys
from collections import Counter, defaultdict, namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import sharing
from functions import ABSTRACTION, DRIVER, SymbolTable, class_of

# The drivers that are compared; REFERENCE is another in C, which does some of the rows.
NULL, NVME = ("null_blk", "rnull", "brd"), ("nvme", "rnvme", "-")
C, RUST, REFERENCE = NVME if "--nvme" in sys.argv else NULL
COUNTS = ["instructions", "string", "locked", "calls", "indirect"]
HEADER = ["row", "driver", "boot", "turn", "ios", "size", "class", "symbol", *COUNTS]
MEMORY = (
    "memory"  # the row of the memory figures: symbol is the figure's name, instructions are bytes
)

# Rows in which the scheduler runs a task of the kernel in one of several ways, from boot to boot.
# Only what the driver itself executes comes out the same each time.
SCHEDULED = ("discard/4k", "nvme/discard/4k", "nvme/flush")


def polls_controller(row):
    """Whether a task polls a controller of QEMU.

    How often it looks before there is a completion depends on the host. That takes instructions, but
    no locked ones, and none of the driver but in functions that look.
    """
    return row.startswith(("nvme/poll/", "nvme/dbcs/poll/"))


def looks(symbol):
    """Whether a function looks for completions of a queue that is polled."""
    return symbol == "nvme_poll" or symbol.endswith("::Io::poll")


@dataclass
class Region:
    """One run of the load program, as the plugin counted it."""

    row: str
    driver: str
    turn: int  # the number of its device in the boot
    ios: int
    size: int  # of an I/O, in bytes
    instructions: list = field(default_factory=list)  # (address, kind, count)
    writes: list = field(
        default_factory=list)  # (address, of the last call, cache line, vCPUs' mask)


class Boot:
    """What one guest left."""

    def __init__(self, directory):
        self.regions = []
        self.symbols = []  # (address, name, module or "")
        self.memory = {}  # (driver, what) -> bytes
        self.failures = []  # lines
        if not self.read_output(f"{directory}/output"):
            self.failures.append("the guest's script did not come to its end")
        counted = self.read_counts(f"{directory}/counts")
        if counted != len(self.regions):
            self.failures.append(
                f"{counted} regions were counted, {len(self.regions)} were announced")
        self.failures = [f"{directory}: {failure}" for failure in self.failures]

    def read_output(self, path):
        """What the guest's script printed; returns whether that is all."""
        driver, turn, finished = "", 0, False
        with open(path, encoding="utf-8", errors="replace") as lines:
            for words in (line.split() for line in lines):
                match words:
                    case ["driver", driver, turn]:
                        pass
                    case ["region", row, ios, size, _]:
                        numbers = [int(word.split("=")[1]) for word in (ios, size)]
                        self.regions.append(Region(row, driver, int(turn), *numbers))
                    case ["memory", driver, what, hundredths]:
                        self.memory[driver, what] = int(hundredths) / 100
                    case ["symbol", address, _, name, *module]:
                        self.symbols.append((int(address, 16), name, "".join(module).strip("[]")))
                    case ["bench:", "done"]:
                        finished = True
                    case ["failed" | "./load:", *_]:
                        self.failures.append(" ".join(words))
        return finished

    def read_counts(self, path):
        """What the plugin wrote; returns the number of regions."""
        number = 0
        with open(path, encoding="ascii") as lines:
            for line in lines:
                kind, *words = line.split()
                if kind == "region":
                    number += 1
                elif number > len(self.regions):
                    pass
                elif kind == "i":
                    counted = int(words[0], 16), words[1], int(words[2])
                    self.regions[number - 1].instructions.append(counted)
                elif kind == "w":
                    self.regions[number - 1].writes.append(tuple(int(word, 16) for word in words))
        return number


# What an instruction of a kind adds to; a step of a repeated string instruction is string alone.
KINDS = {
    "-": ["instructions"],
    "L": ["instructions", "locked"],
    "C": ["instructions", "calls"],
    "I": ["instructions", "calls", "indirect"],
    "J": ["instructions", "indirect"],
    "S": ["string"],
}


def lines_of(boots, kernel_map):
    """The lines of the CSV for the boots."""
    for number, boot in enumerate(boots):
        table = SymbolTable(kernel_map, boot.symbols)
        for region in boot.regions:
            head = [region.row, region.driver, number, region.turn, region.ios, region.size]
            costs = defaultdict(Counter)
            for address, kind, count in region.instructions:
                symbol = table.at(address)
                for name in KINDS[kind]:
                    costs[class_of(symbol), symbol.readable][name] += count
            for key, cost in sorted(costs.items()):
                yield [*head, *key, *(cost[name] for name in COUNTS)]
        for (driver, what), size in boot.memory.items():
            yield [MEMORY, driver, number, 0, 1, 0, "", what, size, 0, 0, 0, 0]


def collect(path, kernel_map):
    """Writes the CSV file from the directories beside it; returns what went wrong in them."""
    results = Path(path).parent
    counted = [Boot(directory) for directory in sorted(results.glob("boot*"))]
    recorded = [Boot(directory) for directory in results.glob("sharing")]
    wrong = [failure for boot in counted + recorded for failure in boot.failures]
    for boot in counted + recorded:
        text = [address for address, name, module in boot.symbols if name == "_text" and not module]
        if text != [SymbolTable(kernel_map, []).text]:
            wrong.append(f"the guest's kernel is not where {kernel_map} says")
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(lines_of(counted, kernel_map))
        for boot in recorded:
            symbols = SymbolTable(kernel_map, boot.symbols)
            for region in boot.regions:
                writer.writerows(sharing.csv_lines(region, symbols))
    return wrong


Run = namedtuple("Run", "row driver boot turn")  # one run of a row on a driver


class Measurement:
    """All of it; costs are per I/O, the median of the runs."""

    def __init__(self, path):
        """Of the CSV file."""
        self.runs = defaultdict(dict)  # Run -> (class, symbol) -> one of COUNTS -> per I/O
        self.memory = {}  # (what, driver) -> bytes
        self.sharing = defaultdict(dict)  # (what, driver) -> writers -> cache lines
        with open(path, encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                driver, symbol = line["driver"], line["symbol"]
                if line["row"] == MEMORY:
                    self.memory.setdefault((symbol, driver), float(line["instructions"]))
                elif line["row"] == sharing.SHARING:
                    self.sharing[line["class"], driver][symbol] = int(line["instructions"])
                else:
                    run = Run(line["row"], driver, int(line["boot"]), int(line["turn"]))
                    cost = Counter({name: float(line[name]) / int(line["ios"]) for name in COUNTS})
                    self.runs[run][line["class"], symbol] = cost

    @property
    def rows(self):
        """The names of the rows, in the order in which they ran."""
        return list(dict.fromkeys(run.row for run in self.runs))

    def runs_of(self, row, driver):
        """The runs of a row on a driver."""
        return [run for run in self.runs if (run.row, run.driver) == (row, driver)]

    def of_run(self, run, count="instructions", classes=None, but=None):
        """One of COUNTS in a run, of some classes or of all, without the functions `but`."""
        costs = self.runs[run].items()
        return sum(cost[count] for (kind, symbol), cost in costs
                   if (not classes or kind in classes) and not (but and but(symbol)))

    def get(self, row, driver, count="instructions", classes=None, but=None):
        """One of COUNTS, or None if the driver does not do the row."""
        found = [self.of_run(run, count, classes, but) for run in self.runs_of(row, driver)]
        return median(found) if found else None

    def own(self, row, driver):
        """The instructions of driver and abstraction together."""
        return self.get(row, driver, "instructions", (DRIVER, ABSTRACTION))

    def own_but_looks(self, row, driver):
        """The same, without the functions that look for completions of a queue that is polled."""
        return self.get(row, driver, "instructions", (DRIVER, ABSTRACTION), looks)

    def symbols(self, row, driver, count="instructions"):
        """(class, symbol) -> one of COUNTS."""
        runs = [self.runs[run] for run in self.runs_of(row, driver)]
        keys = {key for run in runs for key in run}
        return {key: median(run.get(key, Counter())[count] for run in runs) for key in keys}
