# SPDX-License-Identifier: GPL-2.0
"""What C declares to Rust: the headers behind a file, found by following its #include lines.

Nothing is preprocessed, so all branches of an #ifdef count. That finds what is gone from a tree,
without a configuration or a build; the compiler finds the rest.
"""
import re

import extract

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:<([^>]+)>|"([^"]+)")', re.M)
PATHS = ("include", "arch/x86/include", "include/uapi", "arch/x86/include/uapi", "rust/bindings")
GENERIC = ("include/asm-generic", "include/uapi/asm-generic")
WORD = re.compile(r"\w+")


class Headers:
    """Some files, with the headers that they include."""

    def __init__(self, tree, files):
        self.tree, self.texts, self.places = tree, {}, {}
        waiting = list(files)
        while waiting:
            path = waiting.pop()
            if path in self.texts:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            self.texts[path] = extract.c_mask(text)
            # A string is blanked in a mask, and so is the name of a header.
            waiting += filter(None, (self.find(path, *match.groups())
                                     for match in INCLUDE.finditer(text)))

    def find(self, path, angled, quoted):
        name = angled or quoted
        places = [self.tree / place / name for place in PATHS]
        if quoted:
            places.insert(0, path.parent / name)
        if name.startswith("asm/"):
            # The build makes a header of one line that includes the generic one.
            places += [self.tree / place / name.removeprefix("asm/") for place in GENERIC]
        return next((place for place in places if place.is_file()), None)

    def look_for(self, names):
        """Finds all places at which the names are, for the questions below."""
        self.places = {name: [] for name in names}
        for text in self.texts.values():
            code = None
            for match in WORD.finditer(text):
                if match[0] in self.places:
                    code = code or extract.DIRECTIVE.sub(extract.blank, text)
                    # What a directive says is not there in the code.
                    inside = code[match.start()] == " "
                    self.places[match[0]].append((text if inside else code, match.start(),
                                                  match.end()))

    def any_place(self, name, condition):
        return any(condition(*place) for place in self.places.get(name, ()))

    @staticmethod
    def before(text, start):
        """The statement of which this is a part, as far as it is before `start`."""
        return text[max(text.rfind(mark, 0, start) for mark in ";{}") + 1:start]

    def is_macro(self, name):
        return self.any_place(name, lambda text, start, end: bool(
            re.search(r"#[ \t]*define[ \t]+$", text[text.rfind("\n", 0, start) + 1:start])))

    def is_type(self, name):
        def declared(text, start, end):
            if re.search(r"\b(?:struct|union|enum)\s+$", text[max(0, start - 40):start]):
                return True
            behind = text[end:end + 40].lstrip()
            return behind[:1] in (";", ")", "[") and "typedef" in self.before(text, start).split()
        return self.any_place(name, declared)

    def is_struct(self, name):
        return self.any_place(name, lambda text, start, end: bool(
            re.search(r"\b(?:struct|union)\s+$", text[max(0, start - 40):start])))

    def is_function(self, name, inline=False):
        """Whether a function is declared; one that is inline is none to bindgen."""
        def declared(text, start, end):
            if not text[end:end + 10].lstrip().startswith("("):
                return False
            words = self.before(text, start)
            return (bool(re.fullmatch(r"[\w\s*(),]*\w[\w\s*(),]*", words))
                    and words.count("(") == words.count(")")
                    and not re.search(r"\b(?:return|else|if|while)\b", words)
                    and (inline or "inline" not in words))
        return self.any_place(name, declared)

    def is_variable(self, name):
        ends = re.compile(r"\s*(?:\[[^]]*\]\s*)?;")
        return self.any_place(name, lambda text, start, end: bool(
            ends.match(text, end) and re.search(r"\bextern\b", self.before(text, start))))

    def enum_of(self, name):
        """The names of the enums that have this constant."""
        found = set()
        for text, start, end in self.places.get(name, ()):
            opening = text.rfind("{", 0, start)
            if "}" in text[opening:start] or not re.match(r"\s*[,=}]", text[end:end + 40]):
                continue
            head = re.search(r"\benum\s*(\w*)[^;{}]*$", text[max(0, opening - 200):opening])
            if head:
                found.add(head[1])
        return found

    def exists(self, name):
        questions = self.is_macro, self.is_type, self.is_variable, self.enum_of
        return any(ask(name) for ask in questions) or self.is_function(name, inline=True)
