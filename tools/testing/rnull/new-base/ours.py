# SPDX-License-Identifier: GPL-2.0
"""What our files ask of the kernel: names that they call, use or rely on."""
import re

import extract

BINDING = re.compile(r"\bbindings::(\w+)(?:::(\w+))?(\s*\()?")
GENERIC = re.compile(r"\bbindings::\$(\w+)")
MACRO = re.compile(r"\bmacro_rules!\s*(\w+)\s*\{")
HELPER = re.compile(r"\brust_helper_(\w+)\s*\(")
CALL = re.compile(r"(?<![\w.>])([a-zA-Z_]\w*)\s*\(")
TYPE = re.compile(r"\b(?:struct|union|enum)\s+(\w+)")
CONSTANT = re.compile(r"\b([A-Z_][A-Z0-9_]{3,})\b")
# What C has of its own, or the build defines.
LANGUAGE = {"if", "while", "for", "switch", "return", "sizeof", "defined", "__rust_helper",
            "static_assert", "NULL", "void"}
PROMISE = re.compile(r"SAFETY:|INVARIANT:|# Safety|# Invariants")
QUOTED = re.compile(r"`(?:struct |enum )?([a-z_][a-z0-9_]*)(?:\(\))?`")
CALLED = re.compile(r"\b([a-z_][a-z0-9_]+)\(\)")


class Ours:
    """The Rust files and C helpers of a repository."""

    def __init__(self, top):
        self.top = top
        self.rust = {path: path.read_text(encoding="utf-8")
                     for place in ("rust/kernel", "drivers", "samples")
                     for path in sorted((top / place).rglob("*.rs"))
                     if "generated" not in path.parts}
        self.c = {path: path.read_text(encoding="utf-8")
                  for path in sorted((top / "rust/helpers").glob("*.c"))}
        self.code = {path: extract.rust_mask(text) for path, text in self.rust.items()}
        self.masks = {path: extract.c_mask(text) for path, text in self.c.items()}
        self.helpers = {match[1] for text in self.masks.values() for match in HELPER.finditer(text)}
        self.words = {path: set(re.findall(r"\w+", text))
                      for path, text in (self.code | self.masks).items()}

    def name(self, path):
        return str(path.relative_to(self.top))

    def bindings(self):
        """All (file, name, inner name or None, is called) that Rust takes from the bindings."""
        for path, text in self.code.items():
            for match in BINDING.finditer(text):
                yield path, match[1], match[2], bool(match[3])
            for macro in MACRO.finditer(text):
                yield from ((path, name, None, False) for name in self.through_macro(text, macro))

    @staticmethod
    def through_macro(text, macro):
        """What a macro of the same file is given where its body says `bindings::$parameter`."""
        end = extract.File("x.rs", text).closing(macro.end() - 1)
        body = text[macro.end():end]
        pattern = re.match(r"\s*\(([^)]*)\)", body)
        parameters = [word.strip().partition(":")[0]
                      for word in pattern[1].split(",")] if pattern else []
        for generic in GENERIC.finditer(body):
            if f"${generic[1]}" not in parameters:
                continue
            for use in re.finditer(rf"\b{macro[1]}!\s*[({{\[]([^)}}\]]*)", text[end:]):
                yield use[1].split(",")[parameters.index(f"${generic[1]}")].strip()

    def helper_names(self):
        """All (file, name, whether it is called) that our helpers take from headers."""
        for path, text in self.masks.items():
            text = re.sub(r"^[ \t]*#[ \t]*include[^\n]*", "", text, flags=re.M)
            own = {*re.findall(r"\bstruct\s+(\w+)\s*\{", text),
                   *re.findall(r"#\s*define\s+(\w+)", text)}
            calls = {match[1] for match in CALL.finditer(text)}
            names = calls | {match[1] for pattern in (TYPE, CONSTANT)
                             for match in pattern.finditer(text)}
            for name in sorted(names - own - LANGUAGE):
                if not re.match(r"(rust_helper|CONFIG|ARCH_HAS)_", name):
                    yield path, name, name in calls and not name.isupper()

    def promises(self):
        """All (file, name) of C in comments that justify unsafe code, and in those of helpers."""
        known = set().union(*(self.words[path] for path in self.code)) | self.helpers
        for path, text in self.rust.items():
            for block in self.blocks(text):
                if PROMISE.search(block):
                    for name in QUOTED.findall(block) + CALLED.findall(block):
                        if "_" in name and name not in known:
                            yield path, name
        for path, text in self.c.items():
            for comment in re.findall(r"/\*.*?\*/", text, re.S):
                yield from ((path, name) for name in CALLED.findall(comment))

    @staticmethod
    def blocks(text):
        """The comments of a Rust file, each as one text."""
        block = []
        for line in [*text.splitlines(), ""]:
            comment = re.match(r"\s*//[/!]?\s?(.*)", line)
            if comment:
                block.append(comment[1])
            elif block:
                yield "\n".join(block)
                block = []
