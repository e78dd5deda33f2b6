# SPDX-License-Identifier: GPL-2.0
"""Tests of the layout of the report in a browser, if chromium is installed."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from blkcompare import report, simulate
from blkcompare.simulate import Scenario

CHROMIUM = shutil.which("chromium")
TABLE = Path(__file__).parent / "data" / "rnull-rfc-2023.csv"

# Opens all details, and names what is wider than the window, or has lines on top of each other.
MEASURE = """
<script>addEventListener('load', () => {
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  const wide = [...document.querySelectorAll('body *')].filter(e =>
    e.getBoundingClientRect().right > innerWidth + 1 && !e.parentElement.closest('.scroll, pre'));
  const low = [...document.querySelectorAll('svg.plot text')].filter(e =>
    e.getBoundingClientRect().height < 9);
  parent.document.body.dataset.measured = [document.documentElement.clientWidth, document.documentElement.scrollWidth,
    wide.length, low.length, wide[0] && wide[0].outerHTML.slice(0, 80)].join('|');
});</script></body>"""


def measure(page: Path, width: int) -> list[str]:
    # A window has a least width, a frame has not.
    inside = html.escape(page.read_text().replace("</body>", MEASURE))
    frame = f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{inside}"></iframe>'
    copy = page.with_name("measured.html")
    copy.write_text(f"<!DOCTYPE html><html><body>{frame}</body></html>")
    dumped = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1400,1000",
            "--hide-scrollbars",
            "--virtual-time-budget=3000",
            "--dump-dom",
            copy.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    return re.search(r'<body data-measured="([^"]*)"', dumped)[1].split("|")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    path = tmp_path_factory.mktemp("layout")
    cells = simulate.matrix(jobs=(1,), depth=(1, 8))
    for index, name in enumerate(("first", "second", "a-long-name-" * 12)):
        modal = Scenario(
            cells=1, boots=4, cycles=6, mode_gap=0.3, mode_share_a=0.5, mode_share_b=0.5
        )
        simulate.write_run(
            path / "x.db",
            Scenario(cells=8, boots=4, cycles=6, boot_own=0.003),
            cells=cells,
            name=name,
            modal={next(iter(cells)): modal},
            started=1.7e9 + index,
            seed=index,
        )
    return (
        report.write_report([path / "x.db"], path).html,
        report.write_reference_report(TABLE, path),
    )


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(pages, width):
    for page in pages:
        inner, scroll, wide, low, first = measure(page, width)
        assert int(inner) == width
        assert (int(scroll), int(wide), int(low)) == (int(inner), 0, 0), (page.name, first)
