# SPDX-License-Identifier: GPL-2.0
"""From an address to the function it is in, as the guest's kernel names it."""

import bisect
import re
from dataclasses import dataclass

CRATE = re.compile(r"C(?:s[0-9a-zA-Z]*_)?(\d+)_?")
WORD = re.compile(r"B[0-9a-zA-Z]*_|(?:s[0-9a-zA-Z]*_)?(\d+)_?")  # a reference back, or the length of an identifier


@dataclass(frozen=True)
class Symbol:
    """A function."""

    name: str
    module: str  # "" for the kernel itself

    @property
    def crate(self):
        """The Rust crate whose source the function is from, or "" for C."""
        if not self.name.startswith("_R"):
            return ""
        found = CRATE.search(self.name)
        return self.name[found.end() : found.end() + int(found[1])] if found else ""

    @property
    def readable(self):
        """The name for people: of mangled Rust names the path, without the types in it."""
        if not self.name.startswith("_R"):
            return self.name
        words, at = [], CRATE.search(self.name).start() + 1
        while at < len(self.name):
            word = WORD.match(self.name, at)
            if word and word[1]:
                words.append(self.name[word.end() : word.end() + int(word[1])])
            at = (word.end() if word else at + 1) + (int(word[1]) if word and word[1] else 0)
        return "::".join(dict.fromkeys(word for word in words if word))


UNKNOWN = Symbol("?", "")


class SymbolTable:
    """Functions by address."""

    def __init__(self, kernel_map, module_symbols):
        """Of the kernel's System.map, and of (address, name, module) of what it has loaded."""
        found, self.text = {}, None
        with open(kernel_map, encoding="ascii") as lines:
            for address, kind, name in (line.split() for line in lines):
                if name == "_text":
                    self.text = int(address, 16)
                elif kind in "tTwW" and not name.startswith(("__pfx_", "__cfi_")):
                    found.setdefault(int(address, 16), Symbol(name, ""))
        for address, name, module in module_symbols:
            if module and not name.startswith(("__pfx_", "__cfi_")):
                found.setdefault(address, Symbol(name, module))
        self.addresses = sorted(found)
        self.found = [found[address] for address in self.addresses]

    def at(self, address):
        """The function that an instruction is in."""
        index = bisect.bisect_right(self.addresses, address) - 1
        return self.found[index] if index >= 0 else UNKNOWN
