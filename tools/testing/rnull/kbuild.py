# SPDX-License-Identifier: GPL-2.0
"""Repeats a compilation of a finished kernel build, with another compiler or on another file."""
import json
import os
import pathlib
import re
import shlex
import subprocess


class Compilation:
    """The rustc command line by which kbuild made one object of the output directory `out`."""

    def __init__(self, out, target):
        self.out, self.target = pathlib.Path(out).resolve(), target
        directory, name = os.path.split(target)
        saved = self.out / directory / f".{name}.cmd"
        lines = saved.read_text().splitlines()
        line = next(line for line in lines if line.startswith("savedcmd_"))
        words = shlex.split(line.split(":=", 1)[1].split(";")[0])
        self.env = {"RUSTC_BOOTSTRAP": "1"}  # exported by the kernel's Makefile
        while "=" in words[0]:
            name, value = words.pop(0).split("=", 1)
            self.env[name] = value
        words.pop(0)
        self.source = next(word for word in words if word.endswith(".rs"))
        # The root of a crate is in the directory of its object, as drivers/block/rnull/rnull.rs,
        # or below it: rust/kernel.o is made of rust/kernel/lib.rs.
        self.tree = pathlib.Path(self.source[: self.source.rindex(f"/{directory}/")])
        if not (self.tree / "Kbuild").is_file():
            raise ValueError(f"{self.source} is not in a kernel tree at {self.tree}")
        words.remove(self.source)
        self.flags = []
        for word in words:
            after = self.flags and self.flags[-1]
            if after in ("--emit", "--out-dir"):
                self.flags.pop()
            elif not re.match(r"--(emit|out-dir)=", word):
                self.flags.append(word)

    def run(self, compiler, source, into, *more):
        """Compiles `source`; returns the messages as JSON objects, other lines, the exit status."""
        command = [compiler, *self.flags, "--error-format=json", f"--out-dir={into}", *more,
                   str(source)]
        env = dict(os.environ, **self.env, CLIPPY_CONF_DIR=str(self.tree))
        done = subprocess.run(command, cwd=self.out, env=env, capture_output=True, text=True)
        messages, other = [], []
        for line in done.stderr.splitlines():
            try:
                messages.append(json.loads(line))
            except ValueError:
                other.append(line)
        return [m for m in messages if m.get("message")], other, done.returncode


def place(message):
    """The (file, line) that a message is about: outside macros, in the code that uses them."""
    span = next((span for span in message["spans"] if span["is_primary"]), None)
    while span and span.get("expansion"):
        span = span["expansion"]["span"]
    return (span["file_name"], span["line_start"]) if span else ("", 0)
