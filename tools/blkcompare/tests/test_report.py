# SPDX-License-Identifier: GPL-2.0
"""Tests of the report: that it is complete, needs no network, and says what the numbers say."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from blkcompare import plots, report, simulate, stats
from blkcompare.analysis import CellResult, RunResult, analyse, select_run
from blkcompare.db import Database, DatabaseError
from blkcompare.simulate import Scenario

TABLE = Path(__file__).parent / "data" / "rnull-rfc-2023.csv"
CELLS = simulate.matrix(jobs=(1,), rw=("randread",), depth=(1, 8))
NAMES = list(CELLS)
MODAL = Scenario(cells=1, boots=6, mode_gap=0.3, mode_share_a=0.4, mode_share_b=0.6)
PLAIN = Scenario(cells=4, boots=6, boot_own=0.002)

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Checks that elements are nested, and collects what the tests look at."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.ids, self.links, self.tags, self.styles = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles += data
        elif self.open and self.open[-1] != "script":
            self.text.append(data)

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A report with a difference, modes, rejected cycles and a cell that is missing."""
    path = tmp_path_factory.mktemp("run")
    simulate.write_run(
        path / "x.db",
        PLAIN,
        cells=CELLS,
        effects={NAMES[0]: -0.03},
        modal={NAMES[2]: MODAL},
        skip=[NAMES[3]],
        rejected=0.1,
    )
    written = report.write_report([path / "x.db"], path / "out")
    return path, written, Page(written.html.read_text())


def test_report_has_its_parts(run):
    _, _, page = run
    for part in (
        "Found",
        "Not found",
        "Not looked at",
        "Differences of the cells",
        "The matrix",
        "A/A beside A/B",
        "Cells in detail",
        "Samples in order of time",
        "Modes of null_blk",
        "Latency",
        "Cycles that were not kept",
        "steal … % exceeds … %",
        "Method",
    ):
        assert part in page.words, part
    # A row of each forest for each cell: of the headline, of the median and the 99th percentile of
    # the latency.  Four plots for each cell that was measured, two for all.
    svgs = [a for tag, a in page.tags if tag == "svg"]
    assert sum(a.get("class") == "plot" for a in svgs) == 4 * 3 + 2
    assert sum(a.get("class") != "plot" for a in svgs) == 3 * 4


def test_report_needs_no_network(run):
    _, written, page = run
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object"), tag
        assert not {"src", "srcset", "data"} & set(attributes), (tag, attributes)
    text = written.html.read_text()
    assert not re.search(r"@import|url\(|https?://|fetch\(|XMLHttp", text)


def test_links_lead_somewhere(run):
    _, _, page = run
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link.startswith("#")
        # A cell without samples has no details.
        assert link[1:] in page.ids, link


def test_report_follows_the_colour_scheme(run):
    _, _, page = run
    assert "prefers-color-scheme: dark" in page.styles
    light, dark = (
        set(re.findall(r"(--[\w-]+):", block))
        for block in re.findall(r":root \{(.*?)\n\s*\}", page.styles, re.DOTALL)
    )
    assert light == dark
    used = set(re.findall(r"var\((--[\w-]+)", page.styles)) - {"--t"}
    assert used <= light
    # Colours are set by classes alone.
    for tag, attributes in page.tags:
        assert not {"fill", "stroke", "color"} & set(attributes), (tag, attributes)


def test_plots_have_styles(run):
    """A class of a plot that the style sheet does not know would be invisible."""
    _, _, page = run
    known = set(re.findall(r"\.([a-z]\w*)", page.styles))
    inside = [a["class"] for tag, a in page.tags if tag in ("path", "rect") and "class" in a]
    assert {c for classes in inside for c in classes.split()} <= known


def test_numbers_are_those_of_the_analysis(run):
    path, written, page = run
    result = analyse(select_run(path / "x.db"))
    with written.csv.open() as file:
        rows = {row["cell"]: row for row in csv.DictReader(file)}
    document = json.loads(written.json.read_text())
    cells = {cell["cell"]: cell for cell in document["runs"][0]["cells"]}
    assert list(rows) == list(cells) == NAMES
    for cell in result.cells:
        row, other = rows[cell.name], cells[cell.name]
        assert row["verdict"] == other["verdict"] == cell.verdict.value
        if cell.estimate is None:
            assert row["difference_percent"] == ""
            assert other["difference_percent"] is None
            continue
        mean = stats.percent(cell.estimate.mean)
        assert float(row["difference_percent"]) == pytest.approx(mean, rel=1e-4)
        assert other["difference_percent"] == pytest.approx(mean)
        assert other["p_bh"] == pytest.approx(cell.p_adjusted)
        assert f"{mean:+.2f}" in page.words
        by_boot = other["log_ratio_by_boot"]
        assert len(by_boot) == 6 and all(len(d) == 8 for d in by_boot.values())
    modal = cells[NAMES[2]]
    assert modal["modes"]["A"]["found"] and len(modal["modes"]["A"]["shares"]) == 2
    assert len(modal["within_modes_percent"]) == 2


def test_latency_is_beside_the_headline(run):
    _, written, page = run
    assert (
        "The median latency of rnull is longer than that of null_blk in 1 cell of 2" in page.words
    )
    with written.csv.open() as file:
        rows = {row["cell"]: row for row in csv.DictReader(file)}
    cells = {c["cell"]: c for c in json.loads(written.json.read_text())["runs"][0]["cells"]}
    slow = rows[NAMES[0]]
    # The latency of a simulated sample is the inverse of its IOPS.
    inverse = 100 / (1 + float(slow["difference_percent"]) / 100) - 100
    for name in ("p50", "p99"):
        assert float(slow[f"{name}_percent"]) == pytest.approx(inverse, rel=1e-3)
        assert slow[f"{name}_verdict"] == slow["verdict"] == "slower"
        assert cells[NAMES[0]][f"{name}_p_bh"] == pytest.approx(float(slow[f"{name}_p_bh"]), 1e-4)
        assert (rows[NAMES[2]][f"{name}_verdict"], rows[NAMES[2]][f"{name}_percent"]) == (
            "modes",
            "",
        )
    assert page.words.count(f"{inverse:+.2f} (") >= 2
    assert written.summary.count("99th percentile of the latency") >= 2


def test_headline_of_latency(tmp_path):
    headline = {"metric": "p99", "test": "t", "beside": ["iops"]}
    simulate.write_run(
        tmp_path / "x.db",
        PLAIN,
        cells=CELLS,
        effects={NAMES[0]: -0.03},
        plan={"headline": headline},
    )
    written = report.write_report([tmp_path / "x.db"], tmp_path)
    page = Page(written.html.read_text())
    assert "Beside the headline" in page.words and "I/O per second" in page.words
    assert "means that the 99th percentile of the latency of rnull (B) is longer" in page.words
    (row,) = [row for row in csv.DictReader(written.csv.open()) if row["cell"] == NAMES[0]]
    assert (row["metric"], row["verdict"], row["iops_verdict"]) == ("p99", "slower", "slower")
    assert float(row["difference_percent"]) > 2.5 and float(row["iops_percent"]) < -2.5
    # A longer latency has the colour of what is worse.
    (cell,) = [a for tag, a in page.tags if tag == "td" and NAMES[0] in a.get("title", "")]
    assert cell["class"].split()[0] == "minus" and "+3" in cell["title"]


def test_runs_with_another_headline_are_not_in_the_trend(tmp_path):
    for i, metric in enumerate(("iops", "p50", "p50")):
        simulate.write_run(
            tmp_path / "x.db",
            Scenario(cells=4, boots=3, cycles=2),
            cells=CELLS,
            name=f"release {i}",
            plan={"headline": {"metric": metric, "beside": []}},
            started=1.7e9 + 1e6 * i,
        )
    page = Page(report.write_report([tmp_path / "x.db"], tmp_path).html.read_text())
    assert sum("run, as numbered in the table" in text for text in page.text) == 1
    trend = [a for tag, a in page.tags if tag == "path" and a.get("class") == "interval m0"]
    assert len(trend) == 2


def test_summary_is_for_a_terminal(run):
    _, written, _ = run
    assert "Found:" in written.summary and "Not looked at:" in written.summary
    assert "slower" in written.summary


def test_a_void_run_says_so_on_top(tmp_path):
    scenario = Scenario(cells=24, boots=6, boot_own=0.002, control_effect=0.02)
    simulate.write_run(tmp_path / "x.db", scenario)
    written = report.write_report([tmp_path / "x.db"], tmp_path)
    page = Page(written.html.read_text())
    first = page.words.index("This run is void")
    assert first < page.words.index("Found")
    assert not [a for _, a in page.tags if "badge faster" in (a.get("class") or "")]
    with written.csv.open() as file:
        assert {row["verdict"] for row in csv.DictReader(file)} == {"void"}
    assert "void" in written.summary


def test_runs_and_machines_in_a_trend(tmp_path):
    for i in range(3):
        simulate.write_run(
            tmp_path / f"{i % 2}.db",
            Scenario(cells=4, boots=5, boot_own=0.002, effect=0.01 * i),
            cells=CELLS,
            name=f"release {i}",
            machine={"id": str(i % 2), "name": f"machine {i % 2}"},
            started=1.7e9 + 1e6 * i,
            seed=i,
        )
    written = report.write_report([tmp_path / "0.db", tmp_path / "1.db"], tmp_path / "out")
    page = Page(written.html.read_text())
    assert "Trend" in page.words and "Over 2 machines" in page.words
    for i in range(3):
        assert f"release {i}" in page.words
    # The newest is on top, in full; the others are closed.
    assert page.words.index("Run 2: release 1") < page.words.index("Run 1: release 0")
    document = json.loads(written.json.read_text())
    assert [r["name"] for r in document["runs"]] == [f"release {i}" for i in range(3)]
    overall = document["across_machines"]["overall_percent"]
    assert overall[1] < overall[0] < overall[2]
    # The newest run of each machine: releases 1 and 2.
    assert overall[0] == pytest.approx(1.5, abs=0.3)
    assert "2 earlier runs" in written.summary


def test_a_run_that_is_given_twice_counts_once(tmp_path):
    simulate.write_run(tmp_path / "x.db", PLAIN, cells=CELLS)
    written = report.write_report([tmp_path / "x.db", tmp_path / "x.db"], tmp_path)
    assert len(json.loads(written.json.read_text())["runs"]) == 1


@pytest.mark.parametrize(
    ("scenario", "options", "words"),
    [
        (Scenario(cells=4, boots=1, cycles=3), {}, "fewer than 3 boots"),
        (Scenario(cells=4, boots=2, cycles=1), {}, "no interval"),
        (PLAIN, {"control": False}, "there is no A/A control"),
        (PLAIN, {"complete": False}, "This run is not complete"),
        (PLAIN, {"skip": NAMES}, "4 cells of the plan without a kept cycle"),
    ],
)
def test_reports_of_poor_runs(tmp_path, scenario, options, words):
    simulate.write_run(tmp_path / "x.db", scenario, cells=CELLS, **options)
    written = report.write_report([tmp_path / "x.db"], tmp_path)
    page = Page(written.html.read_text())
    assert words in page.words
    if scenario.boots < 3:
        # A colour would look like a verdict.
        shades = [a["style"] for tag, a in page.tags if tag == "td" and "--t" in a.get("style", "")]
        assert shades and set(shades) == {"--t:0.00"}
    json.loads(written.json.read_text())


def test_a_cell_that_has_only_rejected_cycles(tmp_path):
    simulate.write_run(tmp_path / "x.db", PLAIN, cells=CELLS, skip=[NAMES[1]])
    with Database(tmp_path / "x.db") as database:
        run, *_ = database.find_runs()[0]
        boot = database.find_boots(run)[0].id
        cycle = database.start_cycle(run, boot, NAMES[1], 1, "ABBA")
        for i in range(1, 5):
            database.add_sample(
                cycle, i, iops=1.0, bandwidth=1.0, latency={}, started=1.0, ended=2.0
            )
        database.end_cycle(cycle, "rejected", reason="steal")
    written = report.write_report([tmp_path / "x.db"], tmp_path)
    assert f"without a kept cycle: {NAMES[1]}" in Page(written.html.read_text()).words


def test_names_are_escaped(tmp_path):
    evil = "<script>alert(1)</script>&\"'"
    simulate.write_run(
        tmp_path / "x.db",
        Scenario(cells=1, boots=3, cycles=2),
        cells={evil: {"rw": evil}},
        name=evil,
        plan={"drivers": {"A": {"name": evil}, "B": {"name": "b"}}},
        machine={"id": "m", "name": evil},
    )
    written = report.write_report([tmp_path / "x.db"], tmp_path)
    page = Page(written.html.read_text())
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert "alert(1)" in page.words
    with written.csv.open() as file:
        assert [row["cell"] for row in csv.DictReader(file)] == [evil]


def test_a_report_replaces_an_old_one_as_a_whole(tmp_path, monkeypatch):
    simulate.write_run(tmp_path / "x.db", Scenario(cells=4, boots=3, cycles=2), cells=CELLS)
    written = report.write_report([tmp_path / "x.db"], tmp_path)
    old = written.html.read_text()
    monkeypatch.setattr(report, "_html", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.write_report([tmp_path / "x.db"], tmp_path)
    assert written.html.read_text() == old


def test_without_a_run_there_is_no_report(tmp_path):
    Database(tmp_path / "x.db", create=True).close()
    with pytest.raises(DatabaseError, match="there is no run"):
        report.write_report([tmp_path / "x.db"], tmp_path / "out")
    with pytest.raises(DatabaseError, match="no database"):
        report.write_report([], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_heat_map_of_the_public_matrix():
    """120 cells become six maps of five rows and four columns."""
    cells = simulate.matrix(
        (1, 2, 6), ("randread", "randwrite"), ("4k", "32k", "256k", "1m", "16m"), (1, 8, 32, 128)
    )
    maps = report.heat_maps(
        [(axes, report.HeatCell(name, name, 0.0)) for name, axes in cells.items()]
    )
    assert [m.title for m in maps][:2] == ["jobs 1, rw randread", "jobs 1, rw randwrite"]
    assert len(maps) == 6
    for m in maps:
        assert m.columns == ["1", "8", "32", "128"]
        assert [r[0] for r in m.rows] == ["4k", "32k", "256k", "1m", "16m"]
        assert all(cell is not None for _, row in m.rows for cell in row)
    assert maps[3].rows[1][1][2].text == "randwrite 32k depth 32 jobs 2"


def test_heat_map_of_odd_axes():
    for axes in ({}, {"bs": 4096}, {"colour": "red"}):
        (found,) = report.heat_maps([(axes, report.HeatCell("x", "x", 0.0))])
        assert found.rows[0][1][0].text == "x"
    assert report.axis_text("bs", 16 << 20) == "16m"
    assert report.axis_text("bs", 512) == "512"


def test_reference_report_leaves_out_what_does_not_apply(tmp_path):
    page = Page(report.write_reference_report(TABLE, tmp_path).read_text())
    assert "288 cells that read: mean +0.32 %, -11.77 to +6.79 %" in page.words
    assert "288 cells that write: mean +1.32 %, -4.52 to +16.77 %" in page.words
    numbers = [a for tag, a in page.tags if tag == "td"]
    assert len(numbers) == 576
    assert "neither an interval nor a verdict" in page.words


def test_cells_in_sentences_are_links():
    links = {"a-j1": "#1", "a-j12": "#2", "<b>": ""}
    text = report._link_cells("In a-j12, a-j1 and <b>; not xa-j1 or a-j1-x.", links)
    assert text == (
        'In <a class="cell" href="#2">a-j12</a>, <a class="cell" href="#1">a-j1</a> and '
        '<span class="cell">&lt;b&gt;</span>; not xa-j1 or a-j1-x.'
    )
    assert report._link_cells("a & b", {}) == "a &amp; b"


def test_ticks_are_round_and_inside():
    assert plots.ticks(-3, 3, 6) == [-3, -2, -1, 0, 1, 2, 3]
    assert plots.ticks(0.12, 0.37, 5) == pytest.approx([0.15, 0.2, 0.25, 0.3, 0.35])
    assert plots.ticks(5, 5) == [5]
    for low, high in ((-1e-9, 2e-9), (1e6, 3.3e6), (-7, 120)):
        found = plots.ticks(low, high, 5)
        assert 3 <= len(found) <= 7 and low <= found[0] and found[-1] <= high * 1.0001


def test_forest_shows_what_is_beyond_its_scale():
    scale = plots.Scale(2.0)
    assert scale.at(0) == 50 and scale.at(2) == 98 and scale.at(100) == 100
    assert scale.beyond(3) and not scale.beyond(2)
    # Without an interval, the mean has to be on the scale.
    cell = CellResult("x", {}, mean=0.3)
    result = RunResult(None, [cell], 0.01, 0.05, 0.95, None, None, None, None)
    assert not plots.forest_scale(result).beyond(stats.percent(0.3))
    assert plots.signed(0) == "0" and plots.signed(-2) == "-2"


def test_numbers_are_formatted():
    assert [plots.si(v) for v in (1.25e6, 430e3, 12, 2e9)] == ["1.25 M", "430 k", "12", "2 G"]
    assert [plots.duration(v) for v in (90, 1500, 2.5e6, 3e9)] == [
        "90 ns",
        "1.5 us",
        "2.5 ms",
        "3 s",
    ]
    assert report._rounded(-0.001, 1) == "0.0" and report._rounded(0.26, 1) == "+0.3"
