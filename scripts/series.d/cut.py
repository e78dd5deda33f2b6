# SPDX-License-Identifier: GPL-2.0
"""Decides to which patch each line of a file belongs.

A file says so itself where it can: what names another file comes with that one (`mod`, `#include`,
a line of a table of contents), an imported or re-exported name with what it names and what uses it,
a C helper with the first Rust line that calls it. The manifest has the rest.
"""
import difflib
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "new-base.d"))
sys.dont_write_bytecode = True
import extract
from manifest import Error

ALWAYS = sys.maxsize
ABOVE = re.compile(r"\s*(?://(?!!)|#!?\[|/?\*)")
# A line of Rust that begins with an asterisk is a statement.
ABOVE_RUST = re.compile(r"\s*(?://(?!!)|#!?\[)")
MODULE = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
INCLUDE = re.compile(r'#include "([\w./-]+)"|source "([\w./-]+)"')
ITEM = re.compile(
    r"(?<!\*)\b(?:struct|enum|union|trait|fn|type|const|static|macro_rules!)\s+(?=(\w+))")
TYPE = re.compile(r"(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|union|trait) ")
USE = re.compile(r"(?m)^[ \t]*(pub(?:\([^)]*\))?[ \t]+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:$])\$?(?:crate|kernel|super|self)(?:\s*::\s*\w+)+")
GROUP = re.compile(r"\s*(?:pub(?:\([^)]*\))? )?use [\w:]*\{|\s+[\w:]+::\{")
HELPER = re.compile(r"\brust_helper_(\w+)\s*\(")


def indentation(line):
    return len(line) - len(line.lstrip())


def use_tree(words, prefix=()):
    """Takes a `use` tree from a list of words; yields (path, name that it is known by, place)."""
    path, place, alias = list(prefix), words[0].start(), None
    while words and words[0][0] not in ",}":
        word = words.pop(0)[0]
        if word == "{":
            while words[0][0] != "}":
                yield from use_tree(words, path)
                if words[0][0] == ",":
                    words.pop(0)
            words.pop(0)
            return
        if word in ("as", "*"):
            alias = words.pop(0)[0] if word == "as" else word
        else:
            path.append(word)
    if path[-1] == "self" and len(path) > 1:
        path.pop()
    yield tuple(path), alias or path[-1], place


class Import:
    """A name in a `use` item, and the lines that it is written in."""

    def __init__(self, path, name, line, public):
        self.path, self.name, self.line, self.public = path, name, line, public


class Text:
    """The lines of a file, and what names they have."""

    def __init__(self, path, text):
        self.lines = text.splitlines()
        self.code = self.lines
        if path.endswith((".rs", ".c", ".h")):
            self.code = extract.File(path, text).mask.split("\n")[:len(self.lines)]
        # The names that `use` items import, and the spans of those items.
        self.imports, self.use_spans = [], []
        # name -> the lines that have it as a word, but for imports; the lines that define it.
        self.users, self.defined = {}, {}
        if path.endswith(".rs"):
            self.read_imports()
            self.read_names()

    def read_imports(self):
        code = "\n".join(self.code)
        for match in USE.finditer(code):
            first, last = (code.count("\n", 0, at) for at in (match.start(2), match.end()))
            self.use_spans.append((first, last + 1))
            words = list(re.compile(r"\$?\w+|[{},*]").finditer(code, *match.span(2)))
            self.imports += [Import(path, name, code.count("\n", 0, place), bool(match[1]))
                             for path, name, place in use_tree(words)]

    def read_names(self):
        in_use = {i for start, end in self.use_spans for i in range(start, end)}
        for i, line in enumerate(self.code):
            for match in ITEM.finditer(line):
                self.defined.setdefault(match[1], []).append(i)
            if i not in in_use and not MODULE.fullmatch(line.strip()):
                for word in re.findall(r"\w+", line):
                    self.users.setdefault(word, []).append(i)


read = functools.cache(Text)


class File:
    """A file as it will be in the end: its lines, and the patch that each belongs to."""

    def __init__(self, path, text, base):
        self.path, self.base = path, base
        self.rust = path.endswith(".rs")
        self.comment = ABOVE_RUST if self.rust else ABOVE
        found = read(path, text)
        self.lines, self.code = found.lines, found.code
        self.imports, self.use_spans = found.imports, found.use_spans
        self.users, self.defined = found.users, found.defined
        # What the base has is there already; the manifest may say otherwise of any other line.
        self.patch = [None] * len(self.lines)
        # The default of all lines that nothing else is said of, and the first patch of the file.
        self.rest = self.first = None
        self.claims, self.until = [], []
        self.replaced = base is not None
        # (index of the line in front of which it is, text, first patch, first patch without it)
        self.interim = []

    def keep_base(self):
        """A patched file: the lines of the base stay, ours are inserted."""
        self.replaced = False
        self.first = 0
        old = self.base.splitlines()
        for kind, i, j, k, n in difflib.SequenceMatcher(None, old, self.lines, False).get_opcodes():
            if kind == "equal":
                self.patch[k:n] = [0] * (n - k)
            elif kind != "insert":
                raise Error(f"{self.path}:{k + 1}: a line of the base is changed")

    # Parts.

    def above(self, i):
        """Where the comments and attributes begin that stand right above line `i`."""
        while i > 0 and self.comment.match(self.lines[i - 1]):
            i -= 1
        return i

    def end(self, i):
        """The line behind the item, statement, field or paragraph that begins with line `i`."""
        if comment := re.match(r"\s*(//[/!]?|\*)", self.lines[i]):
            for at in range(i, len(self.lines)):
                if self.lines[at].strip() == comment[1]:
                    return at + 1
                if not self.lines[at].strip().startswith(comment[1]):
                    break
            return at
        depth, first = 0, indentation(self.lines[i])
        chain = self.lines[i].lstrip().startswith((".", "||", "&&", "+ "))
        for at in range(i, len(self.lines)):
            code = self.code[at].rstrip()
            for bracket in re.findall(r"[][(){}]", code):
                depth += 1 if bracket in "[({" else -1
                if depth < 0:
                    return at
            following = next((line for line in self.lines[at + 1:] if line.strip()), "")
            goes_on = (indentation(following) > first
                       or following.lstrip().startswith(("{", ")", "where")))
            if depth == 0 and not goes_on and (chain or not self.rust or code.endswith(
                    (";", ",", "}", ")"))):
                return at + 1
        return len(self.lines)

    def find(self, part):
        """Yields the spans of lines that a part means."""
        spans = [(0, len(self.lines))]
        for depth, word in enumerate(part.path):
            found = []
            word, _, last = word.partition(" ... ")
            for start, end in spans:
                found += [(i if self.comment.match(self.lines[i]) else self.above(i), self.end(i))
                          for i in range(start, end) if self.lines[i].strip().startswith(word)]
            if last:
                found = [(start, next((self.end(i) for i in range(start, len(self.lines))
                                       if self.lines[i].strip().startswith(last)), start))
                         for start, end in found]
            spans = found
            if part.line and depth == len(part.path) - 1:
                spans = [(i, i + 1) for start, end in spans
                         for i in range(start, end) if self.lines[i].strip().startswith(word)]
            if len(spans) != 1 and not part.every:
                raise Error(f"{part.where}: {len(spans)} items of {self.path} begin with '{word}'"
                            if spans else f"{part.where}: nothing in {self.path} begins with"
                            f" '{word}'")
        if not spans:
            raise Error(f"{part.where}: nothing in {self.path} begins so")
        return spans

    def claim(self, number, part):
        claims = self.until if part.until else self.claims
        claims += [(start, end, number, part) for start, end in self.find(part)]

    def claimed(self, i):
        """Whether the manifest says what line `i` belongs to."""
        return any(start <= i < end for start, end, _, _ in self.claims)

    def substitute(self, start, end, before, number, part):
        """Notes what is in the place of some lines before their patch."""
        indent = self.lines[start][:indentation(self.lines[start])]
        texts = [(before, part)] if part.instead else []
        texts += [claim[2:] for claim in self.until if claim[:2] == (start, end)]
        texts.sort(key=lambda text: text[0] or 0)
        self.until = [claim for claim in self.until if claim[:2] != (start, end)]
        for i, (begin, text) in enumerate(texts):
            stop = texts[i + 1][0] if i + 1 < len(texts) else number
            self.interim.append((start, [(indent + line).rstrip() for line in text.instead], begin,
                                 stop))

    def settle(self):
        """Gives each line to the innermost part that has it."""
        owner = [None] * len(self.lines)
        # Larger ones first.
        for start, end, number, part in sorted(self.claims, key=lambda claim: claim[0] - claim[1]):
            for i in range(start, end):
                outer = owner[i]
                if outer and not (outer[0] <= start and end <= outer[1]
                                  and outer[:2] != (start, end)):
                    raise Error(f"{self.path}:{i + 1} belongs to two patches: {outer[3].where} and"
                                f" {part.where}")
            outer = owner[start]
            before = outer[2] if outer else self.rest
            if outer and number < before:
                raise Error(f"{part.where}: this is a part of what a later patch adds")
            self.substitute(start, end, before, number, part)
            for i in range(start, end):
                owner[i] = (start, end, number, part)
        for *_, part in self.until:
            raise Error(f"{part.where}: no patch brings just this")
        for i, claim in enumerate(owner):
            if claim and self.patch[i] is None:
                self.patch[i] = claim[2]
        numbers = [n for n in self.patch if n is not None]
        if self.rest is not None:
            numbers.append(self.rest)
        if self.first is None and numbers:
            self.first = min(numbers)

    def definition(self, name):
        """The patch that first defines a name."""
        return min([begin for _, text, begin, _ in self.interim
                    if any(match[1] == name for match in ITEM.finditer(" ".join(text)))]
                   + [self.rest or 0 if self.patch[i] is None else self.patch[i]
                      for i in self.defined[name]])

    # States.

    @functools.cached_property
    def changes(self):
        """The patches that change the file."""
        return {*self.patch, *(at for _, _, *ends in self.interim for at in ends)}

    def state(self, number):
        """The text after that patch, or None if there is no file then."""
        if self.first is None or number < self.first:
            return self.base if self.replaced else None
        lines = []
        interim = {}
        for at, text, begin, end in self.interim:
            if begin <= number < end:
                interim.setdefault(at, []).extend(text)
        for i, line in enumerate(self.lines):
            lines += interim.get(i, [])
            if self.patch[i] <= number:
                lines.append(line)
        if self.path.endswith((".rs", ".c", ".h", "/Kconfig", "/Makefile")) and self.first:
            lines = tidy(lines)
        if self.rust:
            lines = mark_groups(lines, self.lines)
        return "".join(f"{line}\n" for line in lines)


def tidy(lines):
    """Without those empty lines that are left over where others are left out."""
    out, empty = [], False
    for line in lines:
        if not line.strip():
            empty = True
            continue
        closes = line.lstrip().startswith(("}", ")", "]"))
        if empty and out and not out[-1].endswith(("{", "(", "[")) and not closes:
            out.append("")
        empty = False
        out.append(line)
    return out


def mark_groups(lines, final):
    """Where a group of imports lacks some, puts the comment that keeps its names in lines of their
    own behind the last one, unless that is the only one, or a group that has lines anyway."""
    lines, final, groups = list(lines), "\n".join(final), []
    for i, line in enumerate(lines):
        code, ends = line.removesuffix("//").rstrip(), []
        if GROUP.fullmatch(code) and (groups or "use " in code):
            groups.append((i, []))
            continue
        if not groups:
            continue
        if code.strip() in ("}", "},", "};"):
            first, ends = groups.pop()
            if "\n".join(lines[first:i + 1]) not in final:
                last, tall = ends[-1] if ends else (None, False)
                for at, _ in ends:
                    if at != last or not tall:
                        lines[at] = lines[at].removesuffix("//").rstrip()
                if len(ends) > 1 and last == i - 1 and not tall:
                    lines[last] += " //"
        if groups:
            groups[-1][1].append((i, len(ends) > 1))
    return lines


def rustfmt(texts):
    """Formats texts of files as `make rustfmt` does; returns text -> formatted text."""
    # It would look for modules that are files.
    module = re.compile(r"\bmod (\w+);")
    texts = list(texts)
    with tempfile.TemporaryDirectory() as directory:
        files = [pathlib.Path(directory, f"{number}.rs") for number in range(len(texts))]
        for file, text in zip(files, texts):
            file.write_text(module.sub(r"static \1: A_MODULE;", text))
        if files:
            subprocess.run(["rustfmt", "--edition", "2021", "--config", "newline_style=Unix",
                            *files], check=True)
        return {text: re.sub(r"\bstatic (\w+): A_MODULE;", r"mod \1;", file.read_text())
                for file, text in zip(files, texts)}


class Tree:
    """All files, and what they say of each other."""

    def __init__(self, files, roots):
        self.files = {file.path: file for file in files}
        # The directory that the modules of a crate are in -> the path of its root.
        self.roots = roots
        self.steps = {}

    def crate(self, path):
        """The directory of the crate that a Rust file belongs to, or None."""
        return max((d for d in self.roots if path.startswith(d + "/")), key=len, default=None)

    def module(self, directory, names):
        """The file of a module."""
        if not directory:
            return None
        path = self.roots[directory] if not names else "/".join((directory, *names)) + ".rs"
        return self.files.get(path)

    def names(self, file):
        """The crate of a file, and the path of its module."""
        directory = self.crate(file.path)
        if not directory or file.path == self.roots[directory]:
            return directory, ()
        return directory, tuple(file.path.removeprefix(directory + "/")[:-3].split("/"))

    def target(self, file, path):
        """The (file, rest of the path) that a path named in `file` leads to, or None."""
        directory, names = self.names(file)
        head, *rest = (word.lstrip("$") for word in path)
        if head == "kernel":
            directory, names = "rust/kernel", ()
        elif head == "crate":
            names = ()
        elif head == "super":
            names = names[:-1]
            while rest and rest[0] == "super":
                names, rest = names[:-1], rest[1:]
        elif head != "self":
            if not self.module(directory, names + (head,)):
                return None
            names += (head,)
        while rest and self.module(directory, names + (rest[0],)):
            names += (rest.pop(0),)
        found = self.module(directory, names)
        return (found, rest) if found else None

    def arrival(self, file, path, depth=0):
        """The patch that brings what a path names; None if it is not ours."""
        if depth > 9 or not (found := self.target(file, path)):
            return None
        found, rest = found
        first = found.first or 0
        if not rest:
            return first
        name = rest[0]
        if name in found.defined:
            return found.definition(name)
        for item in found.imports:
            if item.name == name and item.path != path:
                step = self.arrival(found, item.path, depth + 1)
                return first if step is None else max(first, step)
        for item in found.imports:
            if item.name == "*" and found.path != file.path:
                step = self.arrival(found, (*item.path, name), depth + 1)
                if step:
                    return max(first, step)
        return first

    # What needs no word in the manifest.

    def assign(self):
        """Gives each line that the manifest says nothing of to a patch."""
        self.await_modules()
        for file in self.files.values():
            self.assign_references(file)
        for file in self.files.values():
            for i, patch in enumerate(file.patch):
                if patch is None and file.rest is not None and not self.automatic(file, i):
                    file.patch[i] = file.rest
        self.assign_helpers()
        for file in self.files.values():
            if file.rust:
                self.assign_imports(file)
        for file in self.files.values():
            if file.first == 0 and not file.replaced:
                self.assign_blanks(file)

    def automatic(self, file, i):
        return file.rust and any(s <= i < e for s, e in file.use_spans)

    def await_modules(self):
        """What stands for a `mod` line comes with that module."""
        for file in self.files.values():
            directory, names = self.names(file) if file.rust else (None, ())
            for n, (at, text, begin, stop) in enumerate(file.interim):
                if match := MODULE.fullmatch(text[-1].strip()):
                    other = self.module(directory, names + (match[1],))
                    if other and other.first:
                        file.interim[n] = at, text, max(begin or 0, other.first), stop

    def give(self, file, i, patch):
        """Gives line `i`, with what stands above it, to a patch, unless it has one."""
        for at in range(file.above(i), i + 1):
            if file.patch[at] is None:
                file.patch[at] = patch

    def assign_references(self, file):
        """Lines that name another file."""
        folder = file.path.rpartition("/")[0]
        for i, line in enumerate(file.lines):
            if file.patch[i] is not None:
                continue
            text = line.strip()
            if match := file.rust and MODULE.fullmatch(text):
                directory, names = self.names(file)
                other = self.module(directory, names + (match[1],))
            elif match := INCLUDE.fullmatch(text):
                other = self.files.get(f"{folder}/{match[1]}" if match[1] else match[2])
            else:
                other = self.files.get(f"{folder}/{text}.rst")
            if other and other.first:
                self.give(file, i, max(other.first, file.rest or 0))

    def assign_helpers(self):
        """A function for Rust comes with the first line that calls it."""
        calls = {}
        for file in self.files.values():
            lines = list(zip(file.code, file.patch)) if file.rust else []
            lines += [(line, begin) for _, text, begin, _ in file.interim for line in text]
            for line, step in lines:
                for name in re.findall(r"\bbindings::(\w+)", line):
                    if step is not None:
                        calls[name] = min(calls.get(name, ALWAYS), step)
        helpers = {}
        for file in self.files.values():
            if file.path.startswith("rust/helpers/"):
                helpers |= self.helpers(file)
        # One may call another.
        callers = [name for name in helpers if name in calls]
        while callers:
            name = callers.pop()
            file, start, end = helpers[name]
            for other in HELPER.findall("\n".join(file.code[start:end])):
                if other in helpers and calls.get(other, ALWAYS) > calls[name]:
                    calls[other] = calls[name]
                    callers.append(other)
        for name, (file, start, end) in helpers.items():
            if name in calls and not file.claimed(start):
                file.patch[start:end] = [max(file.first, calls[name])] * (end - start)

    def helpers(self, file):
        """The functions for Rust in a file: name -> file and lines, with the comment above."""
        found = {}
        for i, line in enumerate(file.code):
            match = HELPER.search(line)
            if match and not line.startswith((" ", "\t")):
                start, end = i, file.end(i)
                while start > 0 and file.lines[start - 1].strip() and not file.lines[
                        start - 1].startswith("#"):
                    start -= 1
                found[match[1]] = file, start, end
        return found

    def assign_imports(self, file):
        for start, end in file.use_spans:
            for i in range(file.above(start), end):
                if file.patch[i] == file.rest and not file.claimed(i):
                    file.patch[i] = None
        leaves = {}
        for item in file.imports:
            step = self.arrival(file, item.path) or 0
            used = [file.patch[i] for i in file.users.get(item.name, ())
                    if file.patch[i] is not None]
            for _, text, begin, _ in file.interim:
                code = " ".join(line.partition("//")[0] for line in text)
                if re.search(rf"\b{re.escape(item.name)}\b", code):
                    used.append(begin)
            if not item.public and used:
                step = max(step, min(used))
            if file.claimed(item.line):
                step = file.patch[item.line]
            leaves.setdefault(item.line, []).append(max(step, file.first))
        for start, end in file.use_spans:
            inside = [(i, min(leaves[i])) for i in range(start, end) if i in leaves]
            self.assign_group(file, start, end, dict(inside))

    def assign_group(self, file, start, end, leaves):
        """The lines of a `use` item: its leaves, and the brackets around those."""
        open_groups = []
        for i in range(start, end):
            code = file.code[i]
            step = leaves.get(i)
            opens = code.count("{") - code.count("}")
            if opens > 0:
                open_groups.append((i, []))
            if step is not None:
                for _, steps in open_groups:
                    steps.append(step)
            if opens < 0:
                first, steps = open_groups.pop()
                for at in (first, i):
                    if file.patch[at] is None:
                        file.patch[at] = min(steps)
            elif opens == 0 and step is not None and file.patch[i] is None:
                file.patch[i] = step
        first = min(step for step in leaves.values())
        for i in range(start, end):
            if file.patch[i] is None:
                file.patch[i] = first
        for i in range(file.above(start), start):
            if file.patch[i] is None:
                file.patch[i] = first

    def assign_blanks(self, file):
        """In a patched file, an empty line goes with ours above it, or else below."""
        for order in (range(len(file.lines)), range(len(file.lines) - 1, -1, -1)):
            last = None
            for i in order:
                if file.patch[i] is None and not file.lines[i].strip() and last:
                    file.patch[i] = last
                last = file.patch[i]

    def unowned(self):
        """Yields one sentence for each line that belongs to no patch."""
        for file in self.files.values():
            for i, patch in enumerate(file.patch):
                if patch is None:
                    yield f"{file.path}:{i + 1} belongs to no patch: {file.lines[i].strip()}"

    # What cannot be built.

    def faults(self):
        """Yields one sentence for each line that names what a later patch brings."""
        for file in self.files.values():
            if not file.rust or not self.crate(file.path):
                continue
            for item in file.imports:
                if not (step := self.arrival(file, item.path)):
                    continue
                for i in [item.line, *file.users.get(item.name, ())]:
                    if file.patch[i] < step:
                        yield self.fault(file, i, "::".join(item.path), step)
            for name, places in file.defined.items():
                if not all(TYPE.match(file.code[i]) for i in places):
                    continue
                step = file.definition(name)
                for i in file.users.get(name, ()):
                    if file.patch[i] < step and not re.search(rf"::{name}\b", file.code[i]):
                        yield self.fault(file, i, name, step)
            for i, line in enumerate(file.code):
                for match in PATH.finditer(line):
                    step = self.arrival(file, tuple(re.findall(r"\w+", match[0])))
                    if step and file.patch[i] < step:
                        yield self.fault(file, i, match[0], step)

    def fault(self, file, i, what, step):
        return (f"{file.path}:{i + 1} comes with patch {file.patch[i]}, but names {what}, which"
                f" comes with {step}")
