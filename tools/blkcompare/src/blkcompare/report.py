# SPDX-License-Identifier: GPL-2.0
"""Writes the report: an HTML file that needs no network, and the same numbers as CSV and JSON."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from . import __version__, plots, reference, stats
from .analysis import (
    SIZE_AXES,
    CellResult,
    RunResult,
    Sentences,
    Verdict,
    analyse_all,
    axis_text,
    join,
    sentences,
)
from .db import DatabaseError, load_runs
from .modes import shares_by_boot

SYMBOL = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.EQUIVALENT: "≈",
    Verdict.UNDECIDED: "?",
    Verdict.MODES: "∿",
    Verdict.TOO_FEW: "…",
    Verdict.MISSING: "–",
    Verdict.VOID: "✕",
}

#: Axes that become columns and rows of the heat map, by preference.
COLUMN_AXES = ("depth", "iodepth", "qd")
ROW_AXES = SIZE_AXES

CSV_COLUMNS = (
    "run",
    "run_name",
    "machine",
    "void",
    "cell",
    "metric",
    "verdict",
    "boots",
    "cycles_kept",
    "cycles_rejected",
    "cycles_failed",
    "a_iops_median",
    "b_iops_median",
    "difference_percent",
    "low_percent",
    "high_percent",
    "p",
    "p_bh",
    "tost_p",
    "tost_p_bh",
    "hodges_lehmann_percent",
    "hodges_lehmann_low_percent",
    "hodges_lehmann_high_percent",
    "hodges_lehmann_confidence",
    "bootstrap_low_percent",
    "bootstrap_high_percent",
    "detectable_percent",
    "control_percent",
    "control_low_percent",
    "control_high_percent",
    "control_p",
    "modes_a",
    "modes_b",
    "within_modes_percent",
    "outliers",
    "lag1",
    "warnings",
)
#: And of what is compared beside the headline, with the name of it before.
BESIDE_COLUMNS = (
    "verdict",
    "percent",
    "low_percent",
    "high_percent",
    "p",
    "p_bh",
    "tost_p_bh",
    "control_percent",
    "a_median",
    "b_median",
)


@dataclass(frozen=True)
class Written:
    """The files of a report, and its sentences for a terminal."""

    html: Path
    csv: Path
    json: Path
    summary: str


@dataclass(frozen=True)
class HeatCell:
    text: str
    title: str
    shade: float  # from -1 to 1
    symbol: str = ""
    strong: bool = False
    link: str = ""


@dataclass(frozen=True)
class HeatMap:
    title: str
    row_axis: str
    column_axis: str
    columns: list[str]
    rows: list[tuple[str, list[HeatCell | None]]]


def write_report(
    db_paths: Sequence[Path | str],
    out_dir: Path | str,
    *,
    confidence: float = 0.95,
    seed: int = 1,
    draws: int = 10_000,
) -> Written:
    """Writes report.html, report.csv and report.json about all runs of the databases."""
    runs = {}
    for path in db_paths:
        for run in load_runs(path):
            runs.setdefault(run.id, run)
    if not runs:
        raise DatabaseError(f"{join(str(p) for p in db_paths) or 'no database'}: there is no run")
    ordered = sorted(runs.values(), key=lambda run: run.started)
    results = [analyse_all(run, confidence=confidence, seed=seed, draws=draws) for run in ordered]
    said = [sentences(result) for result in results]
    machines = across_machines(results, confidence, seed, draws)
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    written = Written(
        out / "report.html",
        out / "report.csv",
        out / "report.json",
        summary_text(results, said),
    )
    _write(written.html, _html(results, said, machines, confidence))
    _write_csv(written.csv, results)
    _write(written.json, _json(results, said, machines, confidence))
    return written


def _write(path: Path, text: str) -> None:
    """Replaces a file as a whole, so that an interrupted report leaves the old one."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def summary_text(results: Sequence[RunResult], said: Sequence[Sentences]) -> str:
    """Returns what was found in the newest run, what was not, and what was not looked at."""
    result, s = results[-1], said[-1]
    lines = [f"{result.run.name}: {result.name_of('B')} compared with {result.name_of('A')}"]
    for title, found in (
        ("Found", s.found),
        ("Not found", s.not_found),
        ("Not looked at", s.not_looked_at),
    ):
        lines += ["", title + ":", *(f"  - {text}" for text in found or ["Nothing."])]
    if len(results) > 1:
        earlier = len(results) - 1
        plural = "" if earlier == 1 else "s"
        lines += ["", f"The report also has {earlier} earlier run{plural}."]
    return "\n".join(lines) + "\n"


# Several machines.


@dataclass(frozen=True)
class AcrossMachines:
    """Cells over machines: the newest complete run of each machine that is not void."""

    runs: list[RunResult]
    cells: dict[str, tuple[float, float, float]]  # mean, low, high: logarithms
    overall: tuple[float, float, float]


def across_machines(
    results: Sequence[RunResult], confidence: float, seed: int, draws: int
) -> AcrossMachines | None:
    """Combines machines by the hierarchical bootstrap, where two or more measured the same cells.

    Runs that compare other drivers or something else than the newest run are left out.
    """

    def compared(result: RunResult) -> tuple[str, ...]:
        return (*(result.name_of(k) for k in "AB"), result.metric.name)

    newest: dict[str, RunResult] = {}
    for result in results:
        same = compared(result) == compared(results[-1])
        if same and result.run.state == "complete" and not result.void:
            newest[result.run.machine["id"]] = result
    if len(newest) < 2:
        return None
    runs = list(newest.values())
    rng = np.random.default_rng(seed)
    found = {}
    for result in runs:
        for cell in result.cells:
            if cell.mean is not None:
                found.setdefault(cell.name, []).append(list(cell.differences.values()))
    common = {name: data for name, data in found.items() if len(data) == len(runs)}
    if not common:
        return None
    cells = {}
    for name, data in common.items():
        low, high = stats.hierarchical_bootstrap(data, confidence, draws, rng)
        mean = float(np.mean([stats.boot_means(boots).mean() for boots in data]))
        cells[name] = (mean, low, high)
    # A boot's mean over the cells is its one number; the cycles of cells are not exchangeable.
    overall = []
    for result in runs:
        chosen = [cell for cell in result.cells if cell.name in common]
        boots = sorted(set.intersection(*(set(cell.differences) for cell in chosen)))
        overall.append([[np.mean([c.differences[b].mean() for c in chosen])] for b in boots])
    if not all(overall):
        return None
    low, high = stats.hierarchical_bootstrap(overall, confidence, draws, rng)
    mean = float(np.mean([np.mean(boots) for boots in overall]))
    return AcrossMachines(runs, cells, (mean, low, high))


# Heat maps.


def _choose_axes(axes: dict[str, list[str]]) -> tuple[str | None, str | None]:
    varying = [axis for axis, values in axes.items() if len(values) > 1] or list(axes)[:1]
    by_size = sorted(varying, key=lambda axis: -len(axes[axis]))

    def choose(preferred: Sequence[str], taken: str | None) -> str | None:
        for axis in [*preferred, *by_size]:
            if axis in varying and axis != taken:
                return axis
        return None

    column = choose(COLUMN_AXES, None)
    return choose(ROW_AXES, column), column


def heat_maps(cells: Sequence[tuple[dict[str, Any], HeatCell]]) -> list[HeatMap]:
    """Arranges cells by their axes: rows and columns, and a map for each value of the rest."""
    axes: dict[str, list[str]] = {}
    for values, _ in cells:
        for axis, value in values.items():
            known = axes.setdefault(axis, [])
            if axis_text(axis, value) not in known:
                known.append(axis_text(axis, value))
    row, column = _choose_axes(axes)
    rest = [a for a, values in axes.items() if a not in (row, column) and len(values) > 1]
    maps: dict[tuple[str, ...], dict[tuple[str, str], HeatCell]] = {}
    for values, cell in cells:
        texts = {axis: axis_text(axis, value) for axis, value in values.items()}
        key = tuple(f"{axis} {texts[axis]}" for axis in rest if axis in texts)
        maps.setdefault(key, {})[texts.get(row, ""), texts.get(column, "")] = cell
    result = []
    for key, found in maps.items():
        columns = [c for c in axes.get(column, [""]) if any(k[1] == c for k in found)]
        rows = [r for r in axes.get(row, [""]) if any(k[0] == r for k in found)]
        result.append(
            HeatMap(
                ", ".join(key) or "all cells",
                row or "",
                column or "",
                columns or [""],
                [(r, [found.get((r, c)) for c in columns or [""]]) for r in rows or [""]],
            )
        )
    return result


def _heat_cell(cell: CellResult, result: RunResult, full: float, link: str) -> HeatCell:
    symbol = SYMBOL[cell.verdict]
    if cell.mean is None:
        text = "modes" if cell.verdict is Verdict.MODES else symbol
        return HeatCell(text, f"{cell.name}: {cell.verdict.value}", 0.0, "", False, link)
    value = stats.percent(cell.mean)
    title = f"{cell.name}: {value:+.2f} %, {cell.verdict.value}"
    # A colour would look like a verdict.
    silent = cell.verdict in (Verdict.TOO_FEW, Verdict.VOID)
    # Green is what is better.
    shade = 0.0 if silent else max(-1.0, min(1.0, result.metric.better * value / full))
    strong = cell.verdict in (Verdict.FASTER, Verdict.SLOWER)
    return HeatCell(_rounded(value, 1), title, shade, symbol, strong, link)


def _full_shade(values: Sequence[float], margin: float) -> float:
    """The difference in percent that has the full colour."""
    return max(300 * margin, float(np.quantile(np.abs(values), 0.95)) if len(values) else 0.0)


# HTML.


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("blkcompare"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=lambda v: "" if v is None else f"{_signed(stats.percent(v))} %",
        bare=lambda v: "" if v is None else _signed(stats.percent(v)),
        p=lambda v: "" if v is None else ("<0.0001" if v < 1e-4 else f"{v:.4f}"),
        si=plots.si,
        duration=plots.duration,
        utc=lambda t: datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M UTC") if t else "",
        pretty=lambda v: json.dumps(v, indent=2, ensure_ascii=False, sort_keys=True),
        link_cells=_link_cells,
        symbol=lambda v: SYMBOL[v],
        value=lambda v: json.dumps(v, ensure_ascii=False) if isinstance(v, (dict, list)) else v,
    )
    return environment


def _signed(value: float) -> str:
    """Formats a difference in percent; infinity occurs where nothing can be detected."""
    return _rounded(value, 2) if math.isfinite(value) else "∞"


def _rounded(value: float, digits: int) -> str:
    """Formats a difference with its sign, and one that rounds to zero without."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def _link_cells(text: str, links: dict[str, str]) -> Markup:
    """Makes a link of each name of a cell in a sentence."""
    names = sorted(links, key=len, reverse=True)
    pattern = "|".join(re.escape(name) for name in names)
    parts = re.split(rf"(?<![\w-])({pattern})(?![\w-])", text) if names else [text]
    result = Markup("")
    for index, part in enumerate(parts):
        if index % 2 == 0:
            result += part
        elif links[part]:
            result += Markup('<a class="cell" href="{}">{}</a>').format(links[part], part)
        else:
            result += Markup('<span class="cell">{}</span>').format(part)
    return result


def _html(
    results: Sequence[RunResult],
    said: Sequence[Sentences],
    machines: AcrossMachines | None,
    confidence: float,
) -> str:
    views = [
        _view(index, result, s)
        for index, (result, s) in enumerate(zip(results, said, strict=True), 1)
    ]
    trend = [r for r in results if r.overall and r.metric == results[-1].metric]
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=f"{results[-1].name_of('B')} compared with {results[-1].name_of('A')}",
            views=views[::-1],
            trend=plots.trend_plot(trend) if len(trend) > 1 else None,
            trend_table=_trend_table(results) if len(results) > 1 else None,
            trend_machines=list(dict.fromkeys(r.run.machine["name"] for r in trend)),
            machines=machines,
            confidence=100 * confidence,
            version=__version__,
            Verdict=Verdict,
            SYMBOL=SYMBOL,
        )
    )


def _view(index: int, result: RunResult, said: Sentences) -> dict[str, Any]:
    """Collects what the template shows of one run."""
    run = result.run
    prefix = f"r{index}"
    means = [stats.percent(c.mean) for c in result.cells if c.mean is not None]
    full = _full_shade(means, result.margin)
    scale = plots.forest_scale(result)
    links = _links(index, result)
    return {
        "index": index,
        "prefix": prefix,
        "result": result,
        "run": run,
        "said": said,
        "a": result.name_of("A"),
        "b": result.name_of("B"),
        "links": links,
        "full": full,
        "heat": heat_maps(
            [(c.axes, _heat_cell(c, result, full, links[c.name])) for c in result.cells]
        ),
        "scale": scale,
        "forest": _forest(result, scale),
        "beside": [
            {
                "result": other,
                "scale": (own := plots.forest_scale(other)),
                "forest": _forest(other, own),
            }
            for other in result.beside
        ],
        "strip": plots.strip_plot(result) if result.measured else None,
        "p_values": plots.p_values_plot(result)
        if any(c.estimate or c.control for c in result.cells)
        else None,
        "details": [_detail(cell, result) for cell in result.measured],
        "raw_rejections": sum(
            c.estimate.p <= result.alpha for c in result.cells if c.estimate is not None
        ),
        "tested": sum(c.estimate is not None for c in result.cells),
        # Reasons that differ in their numbers alone are one.
        "reasons": Counter(
            (c.state, re.sub(r"\d+(\.\d+)?", "…", c.reason or ""))
            for c in run.cycles
            if c.state in ("rejected", "failed")
        ).most_common(),
        "states": Counter(c.state for c in run.cycles),
        "boot_cycles": Counter(c.boot for c in run.cycles if c.state == "kept"),
    }


def _forest(result: RunResult, scale: plots.Scale) -> list[tuple[CellResult, Markup]]:
    return [(cell, plots.forest_row(cell, result, scale)) for cell in result.cells]


def _links(index: int, result: RunResult) -> dict[str, str]:
    """Returns the links to the details of cells; what was not measured has none."""
    return {
        cell.name: f"#r{index}c{i}" if cell.verdict is not Verdict.MISSING else ""
        for i, cell in enumerate(result.cells, 1)
    }


def _detail(cell: CellResult, result: RunResult) -> dict[str, Any]:
    modes = []

    def level(value: float) -> str:
        text = plots.level(result.metric)(value)
        return text if result.metric.percentile else f"{text} {result.metric.unit}"

    beside = [
        (other, next(c for c in other.cells if c.name == cell.name)) for other in result.beside
    ]
    for driver, found in cell.modes.items():
        if found.found:
            shares = shares_by_boot(found.modes, found.samples)
            modes.append(
                {
                    "name": result.name_of(driver),
                    "centres": [level(math.exp(c)) for c in found.modes.centres],
                    "shares": found.modes.shares,
                    "boots": list(zip(found.boots, shares, strict=True)),
                }
            )
    return {
        "cell": cell,
        "samples": plots.samples_plot(result, cell),
        "boots": plots.boots_plot(cell),
        "histogram": plots.histogram(result, cell),
        "latency": plots.latency_plot(cell),
        "modes": modes,
        "beside": beside,
        "warnings": cell.warnings
        + [
            f"{other.metric.title}: {text}"
            for other, found in beside
            for text in found.warnings
            if text not in cell.warnings
        ],
    }


def _trend_table(results: Sequence[RunResult]) -> list[tuple[str, list[HeatCell | None]]]:
    """Returns a row for each cell that occurs, with its difference in each run."""
    means = [stats.percent(c.mean) for r in results for c in r.cells if c.mean is not None]
    full = _full_shade(means, results[-1].margin)
    names = list(dict.fromkeys(c.name for r in reversed(results) for c in r.cells))
    rows = []
    for name in names:
        row: list[HeatCell | None] = []
        for index, result in enumerate(results, 1):
            cell = None
            if result.metric == results[-1].metric:
                cell = next((c for c in result.cells if c.name == name), None)
            link = _links(index, result).get(name, "")
            row.append(_heat_cell(cell, result, full, link) if cell else None)
        rows.append((name, row))
    return rows


# CSV and JSON.


def cell_numbers(cell: CellResult, result: RunResult) -> dict[str, Any]:
    """Returns the columns of the CSV file for a cell; what there is not is None."""

    def percent(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else stats.percent(value)

    e, c, hl, bootstrap = cell.estimate, cell.control, cell.hodges_lehmann, cell.bootstrap
    modes = {d: m.modes.k if m.found else 1 for d, m in cell.modes.items() if m.dip is not None}
    return {
        "run": result.run.id,
        "run_name": result.run.name,
        "machine": result.run.machine["name"],
        "void": result.void,
        "cell": cell.name,
        "metric": result.metric.name,
        "verdict": cell.verdict.value,
        "boots": len(cell.differences),
        "cycles_kept": cell.kept,
        "cycles_rejected": cell.rejected,
        "cycles_failed": cell.failed,
        "a_iops_median": cell.iops.get("A"),
        "b_iops_median": cell.iops.get("B"),
        "difference_percent": percent(cell.mean),
        "low_percent": percent(e.low) if e else None,
        "high_percent": percent(e.high) if e else None,
        "p": e.p if e else None,
        "p_bh": cell.p_adjusted,
        "tost_p": cell.tost,
        "tost_p_bh": cell.tost_adjusted,
        "hodges_lehmann_percent": percent(hl.estimate) if hl else None,
        "hodges_lehmann_low_percent": percent(hl.low) if hl else None,
        "hodges_lehmann_high_percent": percent(hl.high) if hl else None,
        "hodges_lehmann_confidence": hl.confidence if hl else None,
        "bootstrap_low_percent": percent(bootstrap[0]) if bootstrap else None,
        "bootstrap_high_percent": percent(bootstrap[1]) if bootstrap else None,
        "detectable_percent": percent(cell.detectable),
        "control_percent": percent(c.mean) if c else None,
        "control_low_percent": percent(c.low) if c else None,
        "control_high_percent": percent(c.high) if c else None,
        "control_p": c.p if c else None,
        "modes_a": modes.get("A"),
        "modes_b": modes.get("B"),
        "within_modes_percent": [percent(w.mean) for w in cell.within],
        "outliers": cell.outliers,
        "lag1": cell.lag1[0],
        "warnings": cell.warnings,
        **_numbers_beside(cell, result),
    }


def _numbers_beside(cell: CellResult, result: RunResult) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for other in result.beside:
        c = next(c for c in other.cells if c.name == cell.name)
        e = c.estimate
        values = (
            c.verdict.value,
            None if c.mean is None else stats.percent(c.mean),
            stats.percent(e.low) if e else None,
            stats.percent(e.high) if e else None,
            e.p if e else None,
            c.p_adjusted,
            c.tost_adjusted,
            stats.percent(c.control.mean) if c.control else None,
            c.level.get("A"),
            c.level.get("B"),
        )
        for column, value in zip(BESIDE_COLUMNS, values, strict=True):
            numbers[f"{other.metric.name}_{column}"] = value
    return numbers


def _write_csv(path: Path, results: Sequence[RunResult]) -> None:
    names = dict.fromkeys(other.metric.name for result in results for other in result.beside)
    columns = [*CSV_COLUMNS, *(f"{name}_{column}" for name in names for column in BESIDE_COLUMNS)]
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for result in results:
            for cell in result.cells:
                row = cell_numbers(cell, result)
                row["within_modes_percent"] = " ".join(
                    f"{v:.6g}" for v in row["within_modes_percent"]
                )
                row["warnings"] = " ".join(row["warnings"])
                writer.writerow(
                    {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
                )
    os.replace(temporary, path)


def _json(
    results: Sequence[RunResult],
    said: Sequence[Sentences],
    machines: AcrossMachines | None,
    confidence: float,
) -> str:
    runs = []
    for result, s in zip(results, said, strict=True):
        run = result.run
        cells = []
        for cell in result.cells:
            numbers = cell_numbers(cell, result)
            for key in ("run", "run_name", "machine", "void"):
                del numbers[key]
            cells.append(
                {
                    **numbers,
                    "axes": cell.axes,
                    "latency_ns": cell.latency,
                    "log_ratio_by_boot": {b: list(d) for b, d in cell.differences.items()},
                    "control_log_ratio_by_boot": {
                        b: list(d) for b, d in cell.control_differences.items()
                    },
                    "modes": {
                        d: {
                            "dip": m.dip.dip if m.dip else None,
                            "p": m.dip.p if m.dip else None,
                            "p_bh": m.p_adjusted if m.dip else None,
                            "found": m.found,
                            "centres": [math.exp(c) for c in m.modes.centres] if m.found else None,
                            "shares": list(m.modes.shares) if m.found else None,
                        }
                        for d, m in cell.modes.items()
                    },
                }
            )
        runs.append(
            {
                "id": run.id,
                "name": run.name,
                "database": run.path.name,
                "state": run.state,
                "reason": run.reason,
                "started": run.started,
                "ended": run.ended,
                "machine": run.machine,
                "versions": run.versions,
                "plan": run.plan,
                "plan_sha256": run.hash,
                "void": result.void,
                "control": _control_numbers(result),
                "control_not_judged": result.control_reason,
                "beside": {
                    other.metric.name: {
                        "void": other.void,
                        "control": _control_numbers(other),
                        "overall_percent": _interval(other.overall),
                    }
                    for other in result.beside
                },
                "overall_percent": _interval(result.overall),
                "found": s.found,
                "not_found": s.not_found,
                "not_looked_at": s.not_looked_at,
                "boots": [
                    {"number": b.number, "boot_id": b.boot_id, "kernel": b.kernel, "facts": b.facts}
                    for b in run.boots
                ],
                "events": [{"time": t, "kind": k, "text": x} for t, k, x in run.events],
                "cells": cells,
            }
        )
    document = {
        "program": "blkcompare",
        "version": __version__,
        "confidence": confidence,
        "runs": runs,
        "across_machines": None
        if machines is None
        else {
            "machines": [r.run.machine["name"] for r in machines.runs],
            "overall_percent": [stats.percent(v) for v in machines.overall],
            "cells_percent": {n: [stats.percent(v) for v in t] for n, t in machines.cells.items()},
        },
    }
    return json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _control_numbers(result: RunResult) -> dict[str, Any] | None:
    control = result.control
    if control is None:
        return None
    return {
        "cells": control.cells,
        "boots": control.boots,
        "rejections": control.rejections,
        "limit": control.limit,
        "shared_variance": control.shared,
    }


def _interval(estimate: stats.Estimate | None) -> list[float] | None:
    """Returns the mean and its interval in percent."""
    if estimate is None:
        return None
    return [stats.percent(v) for v in (estimate.mean, estimate.low, estimate.high)]


def _plain(value: Any) -> Any:
    """Converts numbers of numpy, and what JSON does not have."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# The public table.


def write_reference_report(table_path: Path | str, out_dir: Path | str) -> Path:
    """Writes reference.html about the public table of 2023, which has no samples."""
    table = reference.read(table_path)
    full = _full_shade([e.percent for e in table.entries], 0.01)
    maps = heat_maps(
        [
            (
                {
                    "direction": e.direction,
                    "workload": e.workload,
                    "bs": e.block_size,
                    "jobs": e.jobs,
                },
                HeatCell(
                    _rounded(e.percent, 1),
                    f"{e.workload}, jobs {e.jobs}: {e.percent:+.2f} %",
                    max(-1.0, min(1.0, e.percent / full)),
                ),
            )
            for e in table.entries
        ]
    )
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "reference.html"
    _write(
        path,
        _environment()
        .get_template("reference.html")
        .render(
            table=table,
            summaries={d: table.summary(d) for d in ("read", "write")},
            heat=maps,
            full=full,
            version=__version__,
        ),
    )
    return path
