# SPDX-License-Identifier: GPL-2.0
"""Finds the patches that do not apply to a kernel tree, with the replaced files that differ."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile


def targets(patch):
    """The files that a patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(encoding="utf-8"), re.M)


def hunks(patch, target):
    """The lines that a patch expects in a file: (first line of the hunk, lines) for each hunk."""
    found, mine = [], False
    for line in patch.read_text(encoding="utf-8").splitlines():
        if line.startswith("+++ "):
            mine = line == f"+++ b/{target}"
        elif line.startswith("@@ ") and mine:
            found.append((line, []))
        elif mine and found and line[:1] in (" ", "-") and not line.startswith("--- "):
            found[-1][1].append(line[1:])
    return found


def applies(directory, patch, *options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment["GIT_CEILING_DIRECTORIES"] = str(directory.parent)
    run = subprocess.run(["git", "apply", "--check", *options, str(patch)], cwd=directory,
                         env=environment,
                         capture_output=True, check=False)
    return run.returncode == 0


def misfits(tree, patches):
    """Yields a sentence for each patch that does not apply, with the lines that are missing."""
    for patch in sorted(patches.glob("*.patch")):
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch, "tree")
            gone = [target for target in targets(patch) if not (tree / target).is_file()]
            for target in targets(patch):
                (copy / target).parent.mkdir(parents=True, exist_ok=True)
                if target not in gone:
                    shutil.copyfile(tree / target, copy / target)
            if not gone and applies(copy, patch):
                continue
            name = f"patches/{patch.name}"
            if not gone and applies(copy, patch, "--reverse"):
                yield f"{name} is in the tree already", []
                continue
            yield f"{name} does not apply", [line for target in targets(patch)
                                             for line in missing(tree, patch, target)]


def missing(tree, patch, target):
    """Yields what a patch looks for in vain in a file."""
    if not (tree / target).is_file():
        yield f"{target} is not there"
        return
    lines = (tree / target).read_text(encoding="utf-8", errors="replace").splitlines()
    for heading, expected in hunks(patch, target):
        if any(lines[at:at + len(expected)] == expected for at in range(len(lines))):
            continue
        yield f"{target}: {heading}"
        vain = [line for line in expected if line not in lines]
        yield from (f"    not there: {line}" for line in vain)
        if not vain:
            yield "    these lines are not next to each other any more"


def known_hashes(lists):
    """The hashes that the lists know of each file; a line is read as scripts/overlay reads it."""
    known = {}
    for path in sorted(lists.glob("*.hashes")):
        for line in path.read_text(encoding="utf-8").splitlines():
            digest, _, file = line.partition(" ")
            if digest and not digest.startswith("#"):
                known.setdefault(file.strip(), set()).add(digest)
    return known


def strangers(tree, known):
    """Yields (file, what is wrong with it) for each file whose text in a tree is not known."""
    for file, hashes in sorted(known.items()):
        path = tree / file
        if not path.is_file():
            yield file, "is not there"
        elif hashlib.sha256(path.read_bytes()).hexdigest() not in hashes:
            yield file, "has another text"
