# SPDX-License-Identifier: GPL-2.0
"""A tree that is made up of a few files of the base, for tests to change."""
import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TOP / "scripts/new-base.d"))

import contracts
import extract
import files

failures = []


def check(name, passed, why="see the text of this check"):
    """A line as test suites print it."""
    if not passed:
        failures.append(name)
    print(f"ok new-base: {name}" if passed else f"not ok new-base: {name} - {why}")


class Bench:
    """A base, a copy of this repository, and a tree to be changed."""

    def __init__(self, stock, work):
        self.stock, self.base, self.tree, self.repo = stock, work / "base", work / "tree", work / "repo"
        for part in ("scripts/new-base.d", "scripts/overlay.d", "patches", "rust", "drivers", "samples"):
            shutil.copytree(TOP / part, self.repo / part, ignore=shutil.ignore_patterns("__pycache__", "generated"))
        shutil.copy2(TOP / "scripts/new-base", self.repo / "scripts")
        self.list = self.repo / "scripts/new-base.d/contracts.toml"
        names = {contract.file for contract in contracts.List(self.list).contracts}
        names |= {target for patch in (TOP / "patches").glob("*.patch") for target in files.targets(patch)}
        for name in names | set(files.known_hashes(TOP / "scripts/overlay.d")) | {"Makefile", "rust/kernel/lib.rs"}:
            (self.base / name).parent.mkdir(parents=True, exist_ok=True)
            if (stock / name).is_file():
                shutil.copyfile(stock / name, self.base / name)
        # The base in use may be a later one than the one that was read.
        status, said = self.run("--record", self.base)
        check("the base can be recorded", status == 0, said.strip())

    def run(self, *arguments):
        """Runs new-base, returns its status and all that it says."""
        run = subprocess.run([sys.executable, self.repo / "scripts/new-base", *map(str, arguments)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return run.returncode, run.stdout

    def compare(self, *options):
        return self.run(self.tree, "--base", self.base, *options)

    def fresh(self):
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self.base, self.tree)

    def edit(self, file, pattern, replacement, flags=re.S):
        """Replaces a pattern in a file of the tree, which must have it."""
        path = self.tree / file
        text, count = re.subn(pattern, replacement, path.read_text(), flags=flags)
        path.write_text(text)
        if not count:
            check(f"{file} has what is to be changed", False, f"{pattern!r} is not there")

    def cut(self, file, name):
        """Takes an item out of a file of the tree; returns its text."""
        text = (self.tree / file).read_text()
        item = extract.File(file, text).item(name)
        for part in item.split("\n\nEXPORT")[:1] + re.findall(r"EXPORT\w+\(.*", item):
            text = text.replace(part, "")
        (self.tree / file).write_text(text)
        return item

    def finds(self, name, expected, *said):
        """Checks that just these items are reported, and that the report says certain lines."""
        status, report = self.compare()
        found = set(re.findall(r"^== (\S+: .*?: (?:changed|missing|moved.*))$", report, re.M))
        lines = report.splitlines()
        check(f"{name}: status", status == (1 if expected or said else 0), f"status {status}")
        check(f"{name}: found, with nothing else", found == expected, f"found {sorted(found)}")
        for line in said:
            check(f"{name}: says '{line.strip()}'", any(said.startswith(line) for said in lines), "it does not")
