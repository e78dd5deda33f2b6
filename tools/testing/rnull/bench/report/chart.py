# SPDX-License-Identifier: GPL-2.0
"""The chart: for each row what rnull costs as a part of what null_blk costs, in three ways of counting."""

from html import escape

from table import ALL, C, LOCKED, OWN, PAIRS, RUST, number

PANELS = [
    ("driver and abstraction", "instructions", OWN, 0),
    ("whole kernel without copies", "instructions", ALL, 0),
    ("whole kernel", "locked operations", LOCKED, 1),
]

# What the parts of a row's name mean to people.
GROUPS = {
    "null/direct": "no data, ended at once",
    "null/softirq": "no data, ended in softirq",
    "null/timer": "no data, ended by a timer",
    "null/poll": "no data, polled",
    "mem/bs4096": "4 KiB in memory, blocks of 4096",
    "mem/bs512": "4 KiB in memory, blocks of 512",
    "mem/128k": "128 KiB in memory",
    "mem/1m": "1 MiB in memory",
    "mem/first": "first write of a page",
    "discard": "discard",
    "zoned": "zoned, no data",
}
PARTS = {"uring1": "io_uring", "uring32": "io_uring, 32 at once", "4k": "4 KiB", "128k": "128 KiB"}

GROUP_AT, ROW_AT, PANEL_AT = 16, 220, 386
PANEL, BEYOND = 130, 34  # the widths of 100 % and of what can be more
NUMBERS, APART = (92, 146), 172  # from the end of a panel to the two numbers, to the next panel
TOP, STEP, GAP = 108, 17, 9
INK, FAINT, GREY, BLUE, ORANGE = "#1a1a1a", "#5c5c5c", "#dcdcdc", "#16507a", "#e07b00"
STYLE = f"""
text {{ font: 12px "DejaVu Sans", Helvetica, Arial, sans-serif; fill: {INK} }}
.title {{ font-size: 17px; font-weight: bold }}
.head {{ font-weight: bold }}
.faint {{ fill: {FAINT}; font-size: 11px }}
.rnull {{ font-size: 11px }}
"""


def text(x, y, words, kind="", end=False):
    """A line of text, from x on or up to it."""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{anchor}>{escape(words)}</text>'


def box(x, y, width, height, colour):
    """A filled rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def split(row):
    """The group of a row, and what distinguishes it in there, for people."""
    group = next((name for name in GROUPS if row.startswith(name)), row)
    parts = [part for part in row.removeprefix(group).split("/") if part]
    return group, ", ".join(PARTS.get(part, part) for part in parts)


def bullet(x, y, c, rust, digits):
    """C as a wide grey bar, rnull as a narrow dark one in it, in another colour where it is beyond C."""
    yield box(x, y, PANEL, STEP - 4, GREY)
    width = PANEL * rust / c
    yield box(x, y + 3.5, min(width, PANEL), STEP - 11, BLUE)
    if width > PANEL:
        shown = min(width - PANEL, BEYOND)
        yield box(x + PANEL, y + 3.5, shown, STEP - 11, ORANGE)
        if shown == BEYOND:  # an arrow, since there is more than fits
            yield f'<path d="M{x + PANEL + shown:.1f} {y + 1:.1f} l7 5.5 l-7 5.5 z" fill="{ORANGE}"/>'
    for at, kind, count in zip(NUMBERS, ("rnull", "faint"), (rust, c)):
        yield text(x + PANEL + at, y + 10, number(count, digits), kind, end=True)


def heads():
    """What stands above the rows."""
    yield text(GROUP_AT, 28, "What an I/O costs the kernel: rnull beside null_blk", "title")
    yield box(GROUP_AT, 40, 34, 13, GREY)
    yield text(GROUP_AT + 40, 51, "null_blk, 100 %", "faint")
    yield box(GROUP_AT + 146, 43.5, 34, 6, BLUE)
    yield text(GROUP_AT + 186, 51, "rnull", "faint")
    yield box(GROUP_AT + 232, 43.5, 34, 6, ORANGE)
    yield text(GROUP_AT + 272, 51, "rnull, beyond null_blk", "faint")
    for index, (title, unit, *_) in enumerate(PANELS):
        x = PANEL_AT + index * (PANEL + APART)
        yield text(x, TOP - 28, title, "head")
        yield text(x, TOP - 12, f"{unit} per I/O", "faint")
        for at, kind, name in zip(NUMBERS, ("rnull", "faint"), (RUST, C)):
            yield text(x + PANEL + at, TOP - 12, name, kind, end=True)


def svg(measurement):
    """The picture."""
    rows = [row for row in measurement.rows if None not in (measurement.own(row, C), measurement.own(row, RUST))]
    lines, y, before = list(heads()), TOP - GAP, None
    for row in rows:
        group, rest = split(row)
        if group != before:
            y += GAP
            lines.append(text(GROUP_AT, y + 10, GROUPS.get(group, group)))
            before = group
        lines.append(text(ROW_AT, y + 10, rest, "faint"))
        for index, (_, _, title, digits) in enumerate(PANELS):
            c, rust = (PAIRS[title](measurement, row, who) for who in (C, RUST))
            if c:
                lines += bullet(PANEL_AT + index * (PANEL + APART), y, c, rust, digits)
        y += STEP
    width, height = PANEL_AT + len(PANELS) * (PANEL + APART), y + 12
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            "<!-- SPDX-License-Identifier: GPL-2.0 -->",
            f"<style>{STYLE}</style>",
            box(0, 0, width, height, "#ffffff"),
            *lines,
            "</svg>",
            "",
        ]
    )
