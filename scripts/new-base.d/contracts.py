# SPDX-License-Identifier: GPL-2.0
"""Reads the list of what our invariants rely on, compares it with a kernel tree."""
import dataclasses
import hashlib
import pathlib
import re
import tomllib

import extract

HEADING = re.compile(r'^\["(?P<file>[^"]+)"\.(?:"(?P<quoted>[^"]+)"|(?P<bare>[\w-]+))\]$')
# Where an item can have gone; drivers, architectures and tools have others of the same name.
PLACES = ("block", "fs", "include", "init", "kernel", "lib", "mm", "rust")


class Refusal(Exception):
    """One sentence about what cannot be done, and why."""


@dataclasses.dataclass
class Contract:
    """An item of the kernel's, with what each of our files relies on in it."""

    file: str
    name: str
    hash: str
    relied: dict

    def __str__(self):
        return f"{self.file}: {self.name}"


@dataclasses.dataclass
class Finding:
    """What became of an item: `kind` is changed, moved, missing, or moved and changed."""

    contract: Contract
    kind: str
    file: str | None
    text: str | None


def digest(text):
    return hashlib.sha256(extract.normal(text).encode()).hexdigest()[:16]


class List:
    """The file of contracts."""

    def __init__(self, path):
        self.path = path
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refusal(f"{path} cannot be read: {error}") from error
        self.base, self.exempt, self.contracts = data.pop("base", ""), data.pop("exempt", {}), []
        for file, items in data.items():
            for name, entry in items.items() if isinstance(items, dict) else [(items, None)]:
                self.contracts.append(self.contract(file, name, entry))

    def contract(self, file, name, entry):
        if not (isinstance(entry, dict) and
                all(isinstance(value, str) for value in entry.values())):
            raise Refusal(f"{self.path}: {file}: {name} is no table of strings")
        relied = {path: extract.normal(said) for path, said in entry.items() if path != "hash"}
        if not relied or not all(relied.values()):
            raise Refusal(f"{self.path}: {file}: {name} "
                          "does not say which of our files relies on what")
        return Contract(file, name, entry.get("hash", ""), relied)

    def record(self, hashes, base):
        """Writes the hashes, a dictionary by file and name, and the version that has them."""
        lines, below = [], False
        for line in self.path.read_text(encoding="utf-8").splitlines():
            heading = HEADING.match(line)
            if below and line.startswith("hash = "):
                continue
            lines.append(f'base = "{base}"' if line.startswith("base = ") else line)
            below = bool(heading)
            if heading:
                item = heading["file"], heading["quoted"] or heading["bare"]
                lines.append(f'hash = "{hashes.pop(item)}"')
        if hashes:
            raise Refusal(f"{self.path}: the heading of {next(iter(hashes))} is not on one line")
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        new.replace(self.path)


class Tree:
    """A kernel tree."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.files = {}
        if not all((self.path / file).is_file() for file in ("Makefile", "rust/kernel/lib.rs")):
            raise Refusal(f"{path} is not a Linux source tree with rust/ in it")
        if (self.path / ".rnull-overlay").exists():
            raise Refusal(f"rnull is laid over {path}; name a clean tree, "
                          "or remove it with scripts/overlay --remove")

    def version(self):
        found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)",
                                (self.path / "Makefile").read_text(), re.M))
        return ".".join(found.get(part, "0") for part in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))

    def read(self, file):
        path = self.path / file
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None

    def item(self, file, name):
        if file not in self.files:
            text = self.read(file)
            self.files[file] = extract.File(file, text) if text is not None else None
        return self.files[file] and self.files[file].item(name)

    def search(self, contracts):
        """Yields (contract, file, text) for each place of an item that is not in its file."""
        words = {id(contract): re.split(r"\W+", contract.name.partition(".")[0])[-1].encode()
                 for contract in contracts}
        for place in PLACES if contracts else ():
            for path in sorted((self.path / place).rglob("*.[chr]*")):
                if path.suffix not in (".c", ".h", ".rs") or not path.is_file():
                    continue
                content = path.read_bytes()
                file = str(path.relative_to(self.path))
                for contract in contracts:
                    rust = contract.file.endswith(".rs")
                    if (rust == (path.suffix == ".rs") and file != contract.file
                            and words[id(contract)] in content):
                        text = self.item(file, contract.name)
                        if text is not None:
                            yield contract, file, text

    def compare(self, contracts):
        """Yields a finding for each contract that does not hold word for word."""
        lost, elsewhere = [], {}
        for contract in contracts:
            text = self.item(contract.file, contract.name)
            if text is None:
                lost.append(contract)
            elif digest(text) != contract.hash:
                yield Finding(contract, "changed", contract.file, text)
        for contract, file, text in self.search(lost):
            same = digest(text) == contract.hash
            if same or id(contract) not in elsewhere:
                kind = "moved" if same else "moved and changed"
                elsewhere[id(contract)] = Finding(contract, kind, file, text)
        for contract in lost:
            yield elsewhere.get(id(contract), Finding(contract, "missing", None, None))
