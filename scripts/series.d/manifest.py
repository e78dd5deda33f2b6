# SPDX-License-Identifier: GPL-2.0
"""Reads the manifest: which series there are, of which patches, and what belongs to each.

A file of the directory `manifest` is a series; their names give the order. It begins with the cover
letter: the subject, an empty line, the text, and

    > path                  a file of the base, whose maintainers get copies of the whole series

Then come the patches, in their order:

    == subject
    text

    + path                  the file, but for what is listed elsewhere
    + path                  only parts of it:
    <tab>beginning of line    what begins with that line: an item, a statement, a field
    <tab>*                    what is listed nowhere else
    <tab>item > beginning     the same inside of an item
    <tab>first ... last         from one line to the end of another
    <tab>every beginning      all lines that begin so, each with what belongs to it
    <tab><tab>| text          what is there instead in earlier patches
    <tab>line beginning        that line alone; also `line every beginning`
    <tab>~ beginning          what another patch brings; from this one until then, it is
    <tab><tab>| text
    - path                  a file of the base that goes
    ! command               what has to succeed in a guest with the kernel of this patch
    @ path                  a patch that is made already; it has no subject and text of its own here

A line that begins with # is a comment.
"""
import re


class Error(Exception):
    """The manifest does not fit the tree; the text says where."""


class Part:
    """Lines of a file, by the beginning of their first one."""

    def __init__(self, where, text):
        self.where = where
        self.until = text.startswith("~ ")
        text = text.removeprefix("~ ")
        self.line = text.startswith("line ")
        text = text.removeprefix("line ")
        self.every = text.startswith("every ")
        self.path = [word.strip() for word in text.removeprefix("every ").split(" > ")]
        self.instead = []


class Patch:
    """A patch: its message, and what belongs to it."""

    def __init__(self, where, subject):
        self.where, self.subject = where, subject
        self.body = ""
        self.files = {}
        self.removed = []
        self.boots = []
        self.mail = None

    def part(self, where, path):
        if path in self.files:
            raise Error(f"{where}: {path} is listed twice in one patch")
        self.files[path] = []
        return self.files[path]


class Series:
    """A cover letter and its patches."""

    def __init__(self, path):
        self.name = path.name
        self.patches = []
        self.subject, self.cover = "", ""
        self.watched = []
        self.read(path)

    def read(self, path):
        text, patch, parts = [], None, None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.name}:{number}"
            if line.startswith("#"):
                continue
            if line.startswith("== "):
                self.finish(patch, text)
                patch, text, parts = Patch(where, line[3:].strip()), [], None
                self.patches.append(patch)
            elif line.startswith("@ "):
                self.finish(patch, text)
                patch, text, parts = Patch(where, ""), [], None
                patch.mail = line[2:].strip()
                self.patches.append(patch)
            elif not patch and line.startswith("> "):
                self.watched.append(line[2:].strip())
            elif patch and line.startswith("+ "):
                parts = patch.part(where, line[2:].strip())
            elif patch and line.startswith("- "):
                patch.removed.append(line[2:].strip())
            elif patch and line.startswith("! "):
                patch.boots.append(line[2:].strip())
            elif parts is not None and line.startswith("\t\t|"):
                if not parts:
                    raise Error(f"{where}: this is instead of nothing")
                parts[-1].instead.append(line[3:].removeprefix(" "))
            elif parts is not None and line.startswith("\t"):
                parts.append(Part(where, line.strip()))
            elif parts is not None and line.strip():
                raise Error(f"{where}: this is neither a file nor a part of one")
            else:
                text.append(line)
        self.finish(patch, text)

    def finish(self, patch, text):
        body = "\n".join(text).strip()
        if patch:
            patch.body = body
        else:
            self.subject, _, self.cover = body.partition("\n\n")


def read(directory):
    return [Series(path) for path in sorted(directory.iterdir()) if not path.name.startswith(".")]
