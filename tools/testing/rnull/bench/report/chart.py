# SPDX-License-Identifier: GPL-2.0
"""The chart: per row two bars, null_blk above rnull, what a driver adds to an I/O by kind of work."""

from html import escape

from classes import ABSTRACTION, ALLOCATION, DRIVER, SYNC
from table import C, RUST

# What the driver has in hand; the rest of the kernel is the same for both. Colours that the colour-blind tell apart.
PARTS = [(DRIVER, "#0b6e99"), (ABSTRACTION, "#56b4e9"), (SYNC, "#e69f00"), (ALLOCATION, "#999999")]
LABELS, BAR, GAP, WIDTH, TOP = 190, 9, 12, 560, 64
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.small{font-size:10px;fill:#555}.title{font-size:15px;font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.small{fill:#aaa}}"
)


def bar(measurement, row, driver, y, scale):
    """The parts of a driver's bar, its sum at the end."""
    x = LABELS
    for part, colour in PARTS:
        width = (measurement.get(row, driver, "instructions", (part,)) or 0) * scale
        if width > 0.05:
            yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
        x += width
    total = (x - LABELS) / scale
    yield f'<text class="small" x="{x + 4:.1f}" y="{y + BAR - 1}">{driver} {total:,.0f}</text>'


def legend():
    """What the colours mean."""
    x = LABELS
    for part, colour in PARTS:
        yield f'<rect x="{x}" y="38" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{x + 14}" y="47">{escape(part)}</text>'
        x += 32 + 7 * len(part)


def svg(measurement):
    """The picture. Each row has a scale of its own, as rows differ by a factor of a thousand."""
    rows = [row for row in measurement.rows if measurement.get(row, C) is not None]
    step = 2 * BAR + GAP
    height = TOP + step * len(rows) + 10
    parts = [part for part, _ in PARTS]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABELS + WIDTH + 130} {height}">',
        f"<style>{STYLE}</style>",
        '<text class="title" x="10" y="22">Kernel instructions per I/O that depend on the driver; each row to its own scale</text>',
        *legend(),
    ]
    for index, row in enumerate(rows):
        y = TOP + index * step
        most = max(measurement.get(row, who, "instructions", parts) or 1 for who in (C, RUST))
        lines.append(f'<text x="10" y="{y + BAR + 4}">{escape(row)}</text>')
        for place, driver in enumerate((C, RUST)):
            if measurement.get(row, driver) is not None:
                lines += bar(measurement, row, driver, y + place * (BAR + 1), WIDTH / most)
    return "\n".join([*lines, "</svg>", ""])
