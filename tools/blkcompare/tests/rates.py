# SPDX-License-Identifier: GPL-2.0
"""Measures by simulation how often intervals cover and tests err, and writes the table about it.

    python tests/rates.py --write       # tests/data/rates.json and doc/statistics.md

There is no difference between the drivers in these simulations, except for the column that says so.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import stats as sps

from blkcompare import modes, simulate, stats
from blkcompare.simulate import Scenario

HERE = Path(__file__).parent
DATA = HERE / "data" / "rates.json"
PAGE = HERE.parent / "doc" / "statistics.md"
BEGIN, END = "<!-- rates begin -->", "<!-- rates end -->"

MARGIN, ALPHA = 0.01, 0.05
CELLS, CYCLES = 12, 8

SCENARIOS = {
    "normal boot effects": Scenario(),
    "boot effects that cells share": Scenario(boot_shared=0.006, boot_own=0.003),
    "linear drift, 10 % in a boot": Scenario(drift=0.1),
    "random walk, 0.5 % from leg to leg": Scenario(walk=0.005),
    "outliers: 2 % of legs lose 30 %": Scenario(outliers=0.02, outlier_size=0.36),
    "modes 20 % apart, by leg": Scenario(mode_gap=0.2, mode_share_a=0.5, mode_share_b=0.5),
    "the same, but they last for a boot": Scenario(
        mode_gap=0.2, mode_share_a=0.5, mode_share_b=0.5, mode_lasts=True
    ),
    "modes by leg, B is oftener slow": Scenario(mode_gap=0.2, mode_share_a=0.3, mode_share_b=0.5),
}

#: The headings of what measure() counts.
COLUMNS = {
    "t": "t covers",
    "hl": "HL covers",
    "bootstrap": "bootstrap covers",
    "tost_margin": "TOST errs at the margin",
    "tost_zero": "TOST finds equivalence",
    "bh": "runs with a false discovery",
    "void": "control void",
    "modes": "cells with modes",
}


def measure(scenario: Scenario, boots: int, runs: int, checks: int, seed: int) -> dict:
    """Returns the rates, each as a pair: how often, of how many.

    ``runs`` of CELLS cells are simulated; the slow checks look at ``checks`` cells or runs.
    """
    rng = np.random.default_rng(seed)
    scenario = dataclasses.replace(scenario, boots=boots, cells=CELLS, cycles=CYCLES)
    counts = {key: [0, 0] for key in COLUMNS}

    def count(key: str, hits, total: int) -> None:
        counts[key][0] += int(hits)
        counts[key][1] += total

    hl_rank = _hl_rank(boots)
    i, j = np.triu_indices(boots)
    for run in range(runs):
        x, driver = simulate.draw(scenario, rng)
        d = simulate.differences(x, driver)
        means = d.mean(axis=2)
        t_p = _p(means)
        count("t", (t_p > ALPHA).sum(), CELLS)
        walsh = np.sort((means[:, i] + means[:, j]) / 2, axis=1)
        count("hl", ((walsh[:, hl_rank - 1] <= 0) & (walsh[:, -hl_rank] >= 0)).sum(), CELLS)
        count("tost_zero", (_tost(means) <= ALPHA).sum(), CELLS)
        count("tost_margin", (_tost(means + math.log1p(MARGIN)) <= ALPHA).sum(), CELLS)
        count("bh", (stats.benjamini_hochberg(t_p) <= ALPHA).any(), 1)
        if run < checks:
            control = simulate.differences(x, driver, 2).mean(axis=2)
            verdict = stats.control_rule(control, ALPHA, draws=3000, rng=rng)
            count("void", verdict.failed, 1)
            low, high = stats.hierarchical_bootstrap([list(d[0])], draws=1000, rng=rng)
            count("bootstrap", low <= 0 <= high, 1)
        if run < checks // 2:
            p = [
                modes.dip_test_boots(
                    [x[0, boot][driver[0, boot] == k] for boot in range(boots)], draws=199, rng=rng
                ).p
                for k in (0, 1)
            ]
            count("modes", min(stats.benjamini_hochberg(p)) <= ALPHA, 1)
    return counts


def _hl_rank(boots: int) -> int:
    cumulative = np.cumsum(stats.signed_rank_counts(boots)) / 2.0**boots
    return max(1, int(np.searchsorted(cumulative, ALPHA / 2, side="right")))


def _p(means: np.ndarray) -> np.ndarray:
    n = means.shape[1]
    t = means.mean(axis=1) / (means.std(axis=1, ddof=1) / math.sqrt(n))
    return 2 * sps.t.sf(np.abs(t), n - 1)


def _tost(means: np.ndarray) -> np.ndarray:
    n = means.shape[1]
    se = means.std(axis=1, ddof=1) / math.sqrt(n)
    return sps.t.sf((math.log1p(MARGIN) - np.abs(means.mean(axis=1))) / se, n - 1)


def measure_all(
    runs: int, checks: int, seed: int, only: tuple[str, ...] = (), jobs: int = 1
) -> dict:
    tasks = {
        f"{name}|{boots}": (scenario, boots, runs, checks, seed + index)
        for index, (name, scenario) in enumerate(SCENARIOS.items())
        for boots in (5, 10)
        if not only or name in only
    }
    if jobs == 1:
        return {key: measure(*task) for key, task in tasks.items()}
    with ProcessPoolExecutor(jobs) as pool:
        return dict(zip(tasks, pool.map(measure, *zip(*tasks.values(), strict=True)), strict=True))


def table(rates: dict) -> str:
    """Returns the table of the page."""
    lines = [
        "| simulation | boots | " + " | ".join(COLUMNS.values()) + " |",
        "|---|--:|" + "--:|" * len(COLUMNS),
    ]
    for key, counts in rates.items():
        name, boots = key.split("|")
        shares = [f"{100 * hits / total:.1f} %" for hits, total in (counts[c] for c in COLUMNS)]
        lines.append(f"| {name} | {boots} | " + " | ".join(shares) + " |")
    totals: dict[int, list[str]] = {}
    for column, (_, total) in next(iter(rates.values())).items():
        totals.setdefault(total, []).append(COLUMNS[column])
    sizes = "; ".join(f"{total} for {', '.join(names)}" for total, names in totals.items())
    return "\n".join([*lines, "", f"Cells or runs in each line: {sizes}."])


def page_with(rates: dict, text: str) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table(rates)}\n{END}{rest.split(END)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--checks", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write the data and the page")
    arguments = parser.parse_args()
    rates = measure_all(arguments.runs, arguments.checks, arguments.seed, jobs=arguments.jobs)
    print(table(rates))
    if arguments.write:
        rows = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in rates.items())
        DATA.write_text("{\n" + rows + "\n}\n")
        PAGE.write_text(page_with(rates, PAGE.read_text()))


if __name__ == "__main__":
    main()
