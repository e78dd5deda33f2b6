# SPDX-License-Identifier: GPL-2.0
"""Finds the text of a function, macro, type or field in a C or Rust file.

The text of an item goes from the comment and attributes above it to its last brace or semicolon.
Where a file has several definitions of a name, as #ifdef makes them, the text is all of them in
order. That of a C function has its EXPORT_SYMBOL line, too: a module can do nothing with a function
that is exported no more.

No preprocessor runs: a kernel need not be configured, nor can one configuration hide what another
one compiles.
"""
import functools
import re

C_TOKENS = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
RUST_TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)"""
    r"""|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]+?|[^\\'\n])'""",
    re.S,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b")
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)")
EXPORT = re.compile(r"(?:EXPORT_|module_)\w+\s*\(\s*")
OPENING = re.compile(r"\s*\(")
VALUE = re.compile(r"\s*(?:\[[^;]*?\]\s*|__\w+\s*|\)\s*)*[;=]")
WORD = re.compile(r"\w")
PAIRS = {"{": "}", "(": ")", "[": "]"}
C_KINDS = ("struct", "union", "enum")
RUST_KINDS = ("fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod",
              "macro_rules!")


def blank(match):
    """As many blanks as a match has characters, on as many lines."""
    return re.sub(r"[^\n]", " ", match[0])


def c_mask(text):
    """C code with its comments and strings blanked."""
    return C_TOKENS.sub(blank, text)


def rust_mask(text):
    """Rust code with its comments and strings blanked."""
    return RUST_TOKENS.sub(blank, text)


def normal(text):
    """What of a text counts: comments, in which a contract is written down, but not the layout."""
    return " ".join(text.split())


class File:
    """The items of a file."""

    def __init__(self, path, text):
        self.text = text
        self.rust = path.endswith(".rs")
        self.mask = rust_mask(text) if self.rust else c_mask(text)
        # Without directives; those that choose between branches tell the braces of one from the
        # other's.
        self.code = self.mask if self.rust else DIRECTIVE.sub(blank, self.mask)
        self.conditions = [] if self.rust else self.find_conditions()

    def find_conditions(self):
        return [(match.start(), CONDITION.match(match[0])[1])
                for match in DIRECTIVE.finditer(self.mask) if CONDITION.match(match[0])]

    def item(self, name):
        """The text of all definitions of an item, or None."""
        spans = sorted(set(self.rust_spans(name) if self.rust else self.c_spans(name)))
        texts = [self.text[start:end].strip("\n") for start, end in spans]
        return "\n\n".join(texts) if texts else None

    def closing(self, start):
        """Where the bracket at `start` is closed, or None.

        Each branch of an #if begins at the depth of the first."""
        opening = self.code[start]
        conditions = iter([*(at for at in self.conditions if at[0] > start), (None, "")])
        depth, saved = 0, []
        at, kind = next(conditions)
        brackets = re.compile(r"[%s]" % re.escape(opening + PAIRS[opening]))
        for bracket in brackets.finditer(self.code, start):
            while at is not None and at < bracket.start():
                if kind.startswith("if"):
                    saved.append(depth)
                elif kind == "endif" and saved:
                    saved.pop()
                elif saved:
                    depth = saved[-1]
                at, kind = next(conditions)
            depth += 1 if bracket[0] == opening else -1
            if depth == 0:
                return bracket.end()
        return None

    def with_comment(self, start):
        """Where the comment begins that ends on the line above, if there is one; else `start`."""
        above = self.text[:start].rstrip(" \t")
        if not above.endswith("*/\n"):
            return start
        begin = above.rfind("/*")
        line = above.rfind("\n", 0, begin) + 1
        return line if not above[line:begin].strip() else start

    # C.

    def c_spans(self, name):
        kind, _, rest = name.partition(" ")
        if kind in C_KINDS and rest:
            owner, _, field = rest.partition(".")
            yield from self.fields(kind, owner, field) if field else self.types(kind, owner)
            return
        found = [*self.macros(name), *self.functions(name), *self.variables(name)]
        yield from found
        for at in self.words(name) if found else ():
            start = self.line(at)
            if EXPORT.fullmatch(self.code, start, at):
                yield start, self.code.find(";", at) + 1

    def words(self, name):
        """Where the name is a word of the code; str.find is many times faster than re."""
        at = self.code.find(name)
        while at >= 0:
            if not WORD.match(self.code, at - 1, at) and not WORD.match(self.code, at + len(name)):
                yield at
            at = self.code.find(name, at + 1)

    def declaration(self, at):
        """Where the declaration begins that `at` is a part of."""
        start = max(self.code.rfind(mark, 0, at) for mark in ";}") + 1
        # Behind a directive, what was before it is another matter.
        for match in DIRECTIVE.finditer(self.mask, start, at):
            start = match.end()
        return start + len(self.code[start:at]) - len(self.code[start:at].lstrip())

    def line(self, at):
        return self.text.rfind("\n", 0, at) + 1

    def functions(self, name):
        for at in self.words(name):
            bracket = OPENING.match(self.code, at + len(name))
            if not bracket:
                continue
            # What is defined at the top of a file begins in the first column. A name among the
            # parameters of another function is behind an open bracket.
            start = self.declaration(at)
            before = self.code[start:at]
            if start != self.line(start) or not re.fullmatch(r"[\w\s*(),]*", before):
                continue
            balanced = before.count("(") == before.count(")")
            end = self.closing(bracket.end() - 1) if balanced else None
            body = end and re.compile(r"[^;{}=]*\{").match(self.code, end)
            stop = body and self.closing(body.end() - 1)
            if stop:
                yield self.with_comment(start), stop

    @functools.cached_property
    def defines(self):
        """Where each macro is defined."""
        found = {}
        for match in DIRECTIVE.finditer(self.mask):
            define = DEFINE.match(match[0])
            if define:
                found.setdefault(define[1], []).append(match.span())
        return found

    def macros(self, name):
        for start, end in self.defines.get(name, ()):
            yield self.with_comment(start), end

    def types(self, kind, name):
        for match in re.finditer(rf"^(?:typedef\s+)?{kind}\s+{re.escape(name)}\b[^;{{}}()]*\{{",
                                 self.code, re.M):
            end = self.closing(match.end() - 1)
            stop = end and self.code.find(";", end)
            if stop and stop > 0:
                yield self.with_comment(match.start()), stop + 1

    def fields(self, kind, owner, name):
        """The declarations of a field, in whichever struct or union inside the type it is."""
        declares = re.compile(rf"\b{re.escape(name)}\s*(?=[,:\[)]|__\w|$)")
        # What a pointer to a function takes is no field.
        parameters = re.compile(r"(?<=\))\s*\([^()]*\)")
        for start, end in self.types(kind, owner):
            begin = self.code.index("{", start) + 1
            while begin < end:
                stop = re.compile(r"[;{}]").search(self.code, begin, end)
                if not stop:
                    break
                said = parameters.sub(blank, self.code[begin:stop.start()])
                if stop[0] == ";" and declares.search(said):
                    # The remark behind it on the same line is about it.
                    line = self.text.find("\n", stop.end())
                    behind = self.text[stop.end():line]
                    first = re.compile(r"[^\n;{}]*\n").match(self.code, begin, stop.start())
                    last = line if behind.strip().startswith("/") else stop.end()
                    yield first.end() if first else begin, last
                begin = stop.end()

    def variables(self, name):
        for at in self.words(name):
            match = VALUE.match(self.code, at + len(name))
            if not match:
                continue
            start = self.declaration(at)
            before = self.code[start:at]
            if (start != self.line(start) or not before or "{" in before
                    or before.startswith(("return", "EXPORT_"))):
                continue
            brace = match[0].endswith("=") and re.compile(r"\s*\{").match(self.code, match.end())
            end = self.closing(brace.end() - 1) if brace else match.end() - 1
            stop = self.code.find(";", end or 0)
            if stop >= 0:
                yield self.with_comment(start), stop + 1

    # Rust.

    def rust_spans(self, name):
        if name.startswith("impl "):
            yield from self.impls(name)
        elif "::" in name:
            owner, _, function = name.rpartition("::")
            for begin, end in self.bodies(owner):
                yield from self.items("fn", function, begin, end)
        else:
            kind, _, rest = name.partition(" ")
            if kind in RUST_KINDS and rest:
                owners = self.owners() if kind == "fn" else []
                methods = [body for owner in owners for body in self.bodies(owner)]
                yield from (span for span in self.items(kind, rest)
                            if not any(begin < span[1] <= end for begin, end in methods))

    def with_attributes(self, at):
        """Where the documentation and the attributes begin that stand above the line of `at`."""
        start = self.line(at)
        while start > 0:
            line = self.text.rfind("\n", 0, start - 1) + 1
            above = self.text[line:start].strip()
            if not re.match(r"///|//[^!/]|#\[|\)\]$|\]$", above):
                break
            if above in (")]", "]"):
                opening = self.text.rfind("#[", 0, line)
                line = self.line(opening) if opening >= 0 else line
            start = line
        return start

    def item_end(self, at):
        """Where an item ends whose header goes on at `at`: with a semicolon, or with its braces."""
        while True:
            mark = re.compile(r"[;{(\[]").search(self.code, at)
            if not mark or mark[0] == ";":
                return mark and mark.end()
            end = self.closing(mark.start())
            if end is None or mark[0] == "{":
                return end
            at = end

    def items(self, kind, name, begin=0, end=None):
        pattern = rf"\b{re.escape(kind)}\s+(?:mut\s+)?{re.escape(name)}\b"
        end = len(self.code) if end is None else end
        for match in re.compile(pattern).finditer(self.code, begin, end):
            stop = self.item_end(match.end())
            if stop:
                yield self.with_attributes(match.start()), stop

    @functools.cached_property
    def headers(self):
        """All impl blocks: plain header, where it begins, where its body does, where that ends."""
        found = []
        for match in re.finditer(r"^[ \t]*(?:unsafe\s+)?impl\b([^{;]*)\{", self.code, re.M):
            end = self.closing(match.end() - 1)
            if end:
                found.append((self.plain(match[1]), match.start(), match.end(), end))
        return found

    @staticmethod
    def plain(header):
        """A header of an impl without lifetimes, generics, bounds or paths: `Trait for Type`."""
        before = None
        header = header.replace("->", " ")
        while before != header:
            before, header = header, re.sub(r"<[^<>]*>", "", header)
        header = re.split(r"\bwhere\b", header)[0]
        return normal(re.sub(r"\b\w+::", "", header))

    def impls(self, name):
        for header, start, _, end in self.headers:
            if f"impl {header}" == name:
                blanks = len(self.code[start:]) - len(self.code[start:].lstrip())
                yield self.with_attributes(start + blanks), end

    def owners(self):
        """All types and traits that have functions."""
        return {header.split(" for ")[-1] for header, *_ in self.headers} | set(
            re.findall(r"\btrait\s+(\w+)", self.code))

    def bodies(self, owner):
        """The bodies in which functions of a type or trait stand."""
        for header, _, begin, end in self.headers:
            if header.split(" for ")[-1] == owner or header == owner:
                yield begin, end
        for match in re.finditer(rf"\btrait\s+{re.escape(owner)}\b[^;{{]*\{{", self.code):
            end = self.closing(match.end() - 1)
            if end:
                yield match.end(), end
