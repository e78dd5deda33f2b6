# SPDX-License-Identifier: GPL-2.0
"""Formats the commits of a series as mails: numbered, addressed, with a cover letter."""
import concurrent.futures
import email.utils
import re
import subprocess

import manifest

ROLE = re.compile(r"(?:(.*) <)?([^<> ]+@[^<> ]+?)>? \((.*)\)$")
CHANGES = {"=": None, "!": "changed", ">": "new", "<": "dropped"}


def recipients(source, *of):
    """Whom get_maintainer.pl names for a patch, or for `-f` and a file: [(field, address)]. Copies
    go to who is no maintainer."""
    said = subprocess.run(
        ["perl", "scripts/get_maintainer.pl", "--nogit", "--nogit-fallback", "--roles", *of],
        cwd=source, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = []
    for line in said.splitlines():
        match = ROLE.match(line)
        if not match:
            raise manifest.Error(f"get_maintainer.pl says what is not understood: {line}")
        name, address, roles = match.groups()
        # Several, if there are several entries: "reviewer:RUST,maintainer:XARRAY API".
        field = "To" if re.search(r"\b(maintainer|supporter):", roles) else "Cc"
        found.append((field, email.utils.formataddr(((name or "").strip('"'), address))))
    return found


def watchers(source, series):
    """Who gets copies of the whole series: [(field, address)]."""
    for path in series.watched:
        if not (source / path).is_file():
            raise manifest.Error(f"{series.name}: the base has no {path}, whose maintainers get copies")
    return [("Cc", address) for path in series.watched
            for _, address in recipients(source, "-f", path)]


def headers(found):
    """The headers for recipients; who is in both fields stays in the first."""
    fields = {"To": dict.fromkeys(address for field, address in found if field == "To")}
    fields["Cc"] = {address: None for field, address in found
                    if field == "Cc" and address not in fields["To"]}
    return "".join(f"{field}: {(',' + chr(10) + ' ').join(addresses)}\n"
                   for field, addresses in fields.items() if addresses)


def changelog(repository, start, head, old_start, old_head):
    """What each patch is in comparison with an earlier version: [(kind, new number, subject)]."""
    said = repository.read("range-diff", "--no-color", "--no-patch", "--creation-factor=80",
                           f"{old_start}..{old_head}", f"{start}..{head}")
    lines = [re.match(r"\s*[\d-]+:\s+\S+ ([=!<>])\s+(\d+|-):\s+\S+ (.*)", line)
             for line in said.splitlines()]
    # Of a patch in both versions, git names the earlier subject.
    subjects = repository.read("log", "--reverse", "--format=%s", f"{start}..{head}").splitlines()
    return [(match[1], match[2], match[3] if match[2] == "-" else subjects[int(match[2]) - 1])
            for match in lines]


def describe(changes, version):
    """The changelog of a cover letter."""
    lines = [f"* {CHANGES[kind]}: {subject}" for kind, _, subject in changes if CHANGES[kind]]
    return "\n".join([f"Changes in v{version}:", *(lines or ["* none"])]) + "\n"


def counts(repository, series, start, head):
    """The numbers that a cover letter may name."""
    numbers = [line.split("\t") for line in
               repository.read("diff", "--numstat", f"{start}..{head}").splitlines()]
    added = [line[1:] for line in repository.read("diff", f"{start}..{head}", "--", "*.rs")
             .splitlines() if line.startswith("+")]
    tests = sum(int(plus) for plus, _, path in numbers if path.endswith("tests.rs"))
    return {
        "patches": len(series.patches),
        "files": len(numbers),
        "added": sum(int(plus) for plus, _, _ in numbers),
        "removed": sum(int(minus) for _, minus, _ in numbers),
        "tests": tests,
        "cases": sum(line.strip() == "#[test]" for line in added),
        "unsafe": sum(bool(re.search(r"\bunsafe \{", line.partition("//")[0])) for line in added),
    }


def finish(path, lines, note=""):
    """Adds headers to a mail, and a note where it is not part of the message."""
    head, empty, rest = path.read_text().partition("\n\n")
    if note:
        rest = rest.replace("\n---\n", f"\n---\n{note}\n", 1)
    path.write_text(f"{head}\n{lines}".rstrip("\n") + empty + rest)


def write(repository, series, start, head, outdir, source, version=1, earlier=None):
    """Writes a series, whose recipients are looked for in `source` unless that is None. `earlier`
    is None, or the two ends of the version before."""
    options = ["--quiet", "--signoff", "--cover-letter", f"--output-directory={outdir}"]
    changes = []
    if earlier:
        changes = changelog(repository, start, head, *earlier)
        options += [f"--range-diff={earlier[0]}..{earlier[1]}", "--creation-factor=80"]
    if version > 1:
        options.append(f"--reroll-count={version}")
    repository.git("format-patch", *options, f"{start}..{head}")
    cover, *patches = sorted(outdir.glob("*.patch"))
    blurb = series.cover.format(base=repository.base,
                                **counts(repository, series, start, head))
    if earlier:
        blurb += "\n\n" + describe(changes, version)
    text = cover.read_text().replace("*** SUBJECT HERE ***", series.subject)
    cover.write_text(text.replace("*** BLURB HERE ***", blurb))
    copies = watchers(source, series) if source else []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = list(pool.map(
            lambda patch: recipients(source, patch) + copies if source else [], patches))
    kinds = {number: CHANGES[kind] for kind, number, _ in changes}
    for number, (patch, who) in enumerate(zip(patches, found), 1):
        note = f"v{version}: {kinds.get(str(number)) or 'no change'}\n" if earlier else ""
        finish(patch, headers(who), note)
    finish(cover, headers([one for who in found for one in who]))
