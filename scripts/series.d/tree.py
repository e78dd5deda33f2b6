# SPDX-License-Identifier: GPL-2.0
"""The base and the tree that scripts/overlay makes of it, cut into patches by the manifest."""
import functools
import pathlib
import subprocess
import tempfile

import cut
import manifest

TOP = pathlib.Path(__file__).resolve().parents[2]
MANIFEST = TOP / "scripts/series.d/manifest"
# What the overlay looks at.
PARTS = ("Makefile", "Documentation/block", "drivers/block", "rust", "samples/rust")
# Documentation of the tests and scripts of this repository, which is not part of the series.
KEPT = ("Documentation/block/rnull-maintainers.rst", "Documentation/block/rnull-new-base.rst")
INDEX = "Documentation/block/index.rst"
# The directory of a crate's modules, and its root.
CRATES = {
    "rust/kernel": "rust/kernel/lib.rs",
    "drivers/block/rnull": "drivers/block/rnull/rnull.rs",
    "drivers/block/rnvme": "drivers/block/rnvme/rnvme.rs",
    "samples/rust/block/adversary": "samples/rust/block/adversary/rust_block_adversary.rs",
}


def contents(directory):
    """path -> text, of all files."""
    return {str(path.relative_to(directory)): path.read_text()
            for path in directory.rglob("*")
            if path.is_file() and ".rnull-overlay" not in path.parts}


def lay_over(source):
    """What the overlay changes in a stock tree, but for what is kept: path -> text, before and
    after."""
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        subprocess.run(["bash", "-c", 'tar -C "$0" -c "$@" | tar -x', source, *PARTS], cwd=work,
                       check=True)
        before = contents(work)
        subprocess.run([TOP / "scripts/overlay", work], check=True, stdout=subprocess.DEVNULL)
        after = contents(work)
    for path in KEPT:
        del after[path]
        line = f"   {pathlib.Path(path).stem}\n"
        after[INDEX] = after[INDEX].replace(line, "")
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return ({path: before[path] for path in changed if path in before},
            {path: after[path] for path in changed if path in after})


def patched():
    """The files of the base that have lines of ours among those of others."""
    return {line[6:] for patch in (TOP / "patches").glob("*.patch")
            for line in patch.read_text().splitlines() if line.startswith("+++ b/")}


class Cut:
    """The patches, numbered from 1, and the state of each file after each of them."""

    def __init__(self, changed, directory=MANIFEST):
        self.before, self.after = changed
        self.directory = directory
        self.removed = {}

    def check(self):
        """Reads the manifest; raises an error unless each line belongs to one patch, which can be
        built without those that follow."""
        self.series = manifest.read(self.directory)
        self.patches = [patch for series in self.series for patch in series.patches]
        files = {path: cut.File(path, text, self.before.get(path))
                 for path, text in self.after.items()}
        for path in patched() & files.keys():
            files[path].keep_base()
        self.claim(files)
        self.tree = cut.Tree(files.values(), CRATES)
        for file in files.values():
            file.settle()
        self.complain(f"{file.path} belongs to no patch" for file in files.values()
                      if file.first is None)
        self.tree.assign()
        self.complain(self.tree.unowned())
        self.complain(f"{path} of the base belongs to no patch"
                      for path in self.before.keys() - self.after.keys() - self.removed.keys())
        self.complain(self.tree.faults())

    def claim(self, files):
        wrong = []
        for number, patch in enumerate(self.patches, 1):
            for path in patch.removed:
                if path not in self.before or path in self.removed:
                    raise manifest.Error(f"{patch.where}: there is no {path} to be removed")
                self.removed[path] = number
            for path, parts in patch.files.items():
                if path not in files:
                    raise manifest.Error(f"{patch.where}: the overlay has no {path}")
                file = files[path]
                for part in parts:
                    if part.path == ["*"]:
                        continue
                    try:
                        file.claim(number, part)
                    except manifest.Error as error:
                        wrong.append(str(error))
                if not parts or any(part.path == ["*"] for part in parts):
                    if file.rest is not None:
                        raise manifest.Error(f"{patch.where}: {path} belongs to another patch, too")
                    file.rest = number
        self.complain(wrong)

    def complain(self, faults):
        faults = list(faults)
        if faults:
            more = f"\n... and {len(faults) - 20} more" if len(faults) > 20 else ""
            raise manifest.Error("\n".join(faults[:20]) + more)

    def state(self, path, number):
        """The text of a file after a patch; None if it does not exist then."""
        file = self.tree.files.get(path)
        text = file.state(number) if file else self.before[path]
        text = self.formatted.get(text, text)
        # A file that is made again later is gone until then.
        gone = self.removed.get(path, cut.ALWAYS) <= number
        return None if gone and (not file or number < file.first) else text

    @functools.cached_property
    def formatted(self):
        """Rust files between two patches -> the same text, formatted: where a part is left out, a
        line may have room for more."""
        texts = {file.state(number) for file in self.tree.files.values() if file.rust
                 for number in file.changes}
        return cut.rustfmt(texts - {None, *self.before.values(), *self.after.values()})

    def changes(self, number):
        """path -> text or None, of all files that a patch changes."""
        paths = {path for path, file in self.tree.files.items() if number in file.changes}
        paths |= {path for path, patch in self.removed.items() if patch == number}
        states = {path: (self.state(path, number - 1), self.state(path, number)) for path in paths}
        return {path: new for path, (old, new) in states.items() if old != new}
