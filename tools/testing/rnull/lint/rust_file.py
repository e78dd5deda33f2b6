# SPDX-License-Identifier: GPL-2.0
"""Reads from a Rust file which modules it declares, what it defines, which paths it names."""
import re

TOKENS = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|b?c?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|[cb]?r(?P<h>\#+)".*?"(?P=h)|\s+)"""
    r"""|(?P<word>\$?[A-Za-z_][A-Za-z0-9_]*)|(?P<path>::)|(?P<mark>.)""",
    re.S,
)
ITEMS = {"struct", "enum", "union", "trait", "fn", "type", "const", "static", "mod", "macro_rules"}


def tokens(text):
    """The words and marks of Rust source, each with its line."""
    line = 1
    for match in TOKENS.finditer(text):
        if not match["skip"]:
            yield match[0], line
        line += match[0].count("\n")


def without_tests(words):
    """The tokens without the items that are only compiled for tests."""
    kept, i = [], 0
    while i < len(words):
        attribute = "".join(word for word, _ in words[i : i + 3])
        if attribute.startswith("#["):
            end = closing(words, i + 1)
            inside = [word for word, _ in words[i:end]]
            if "kunit_tests" in inside or "cfg" in inside and any("KUNIT" in w or w == "test" for w in inside):
                i = item_end(words, end)
                continue
            kept += words[i:end]
            i = end
            continue
        kept.append(words[i])
        i += 1
    return kept


def closing(words, opening):
    """The position after the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(words)):
        if words[i][0] in "([{":
            depth += 1
        elif words[i][0] in ")]}":
            depth -= 1
            if depth == 0:
                return i + 1
    return len(words)


def item_end(words, i):
    """The position after the item, with its attributes, that begins at `i`."""
    while i < len(words):
        if words[i][0] in "([":
            i = closing(words, i)
        elif words[i][0] == "{":
            return closing(words, i)
        elif words[i][0] == ";":
            return i + 1
        else:
            i += 1
    return i


def use_tree(words, i, prefix):
    """Yields (path, name it is known by, line) for the `use` tree at `i`; returns the position after it."""
    path, line = list(prefix), words[i][1] if i < len(words) else 0
    while i < len(words):
        word = words[i][0]
        if word == "{":
            i += 1
            while words[i][0] != "}":
                i = yield from use_tree(words, i, path)
                if words[i][0] == ",":
                    i += 1
            return i + 1
        if word == "*":
            yield path, "*", line
            return i + 1
        if word in (",", ";", "}"):
            break
        if word == "as":
            yield path, words[i + 1][0], line
            return i + 2
        if word != "::":
            path.append(word)
        i += 1
    if path and path[-1] == "self" and len(path) > 1:
        path = path[:-1]
    yield path, path[-1] if path else "", line
    return i


class File:
    """One module: what it declares, defines, re-exports; which paths it names."""

    def __init__(self, path, names):
        self.path, self.names = path, names
        self.children, self.defined, self.uses, self.named = [], set(), [], []
        words = without_tests(list(tokens(re.sub(r"\bpub\([^)]*\)", "pub", path.read_text()))))
        i, inline_end = 0, 0
        while i < len(words):
            word, line = words[i]
            inline = i < inline_end
            after = words[i + 1][0] if i + 1 < len(words) else ""
            if word == "use":
                walk = use_tree(words, i + 1, [])
                try:
                    while True:
                        imported, alias, line = next(walk)
                        if inline and imported[:1] == ["super"]:
                            imported = imported[1:] if imported[1:2] == ["super"] else ["self", *imported[1:]]
                        self.uses.append((imported, alias, line))
                except StopIteration as end:
                    i = end.value
                continue
            if word == "mod" and i + 2 < len(words) and words[i + 2][0] == ";":
                self.children.append(after)
            elif word == "mod" and i + 2 < len(words) and words[i + 2][0] == "{":
                # Written out here: `super` inside means this file.
                inline_end = max(inline_end, closing(words, i + 2))
            elif word in ITEMS:
                name = words[i + 2][0] if word == "macro_rules" and i + 2 < len(words) else after
                self.defined.add(name)
            elif after == "::" and (i == 0 or words[i - 1][0] != "::"):
                # What begins with an imported name was looked at where it was imported.
                path_words = [word]
                while i + 2 < len(words) and words[i + 1][0] == "::" and re.match(r"[A-Za-z_]", words[i + 2][0]):
                    path_words.append(words[i + 2][0])
                    i += 2
                if not (inline and path_words[0] == "super"):
                    self.named.append((path_words, line))
            i += 1
