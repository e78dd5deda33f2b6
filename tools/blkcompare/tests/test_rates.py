# SPDX-License-Identifier: GPL-2.0
"""Tests of the published table of error rates: that it is what the simulation gives."""

import json
import math

import pytest
import rates


@pytest.fixture(scope="module")
def published():
    return json.loads(rates.DATA.read_text())


def test_the_page_has_the_data(published):
    text = rates.PAGE.read_text()
    assert rates.page_with(published, text) == text


def test_what_the_page_says_of_the_table(published):
    def share(name, boots, column):
        hits, total = published[f"{name}|{boots}"][column]
        return hits / total

    first, *_ = rates.SCENARIOS
    assert len(published) == 2 * len(rates.SCENARIOS)
    for name, scenario in rates.SCENARIOS.items():
        for boots in (5, 10):
            if scenario.mode_share_a != scenario.mode_share_b:
                # The difference of means, which differs from those of the modes.
                assert share(name, boots, "t") < 0.8
                continue
            assert share(name, boots, "t") > 0.93
            assert share(name, boots, "tost_margin") < 0.065
            assert share(name, boots, "bh") < 0.09
            assert share(name, boots, "void") < 0.01
    for boots in (5, 10):
        assert share(first, boots, "modes") < 0.07
        assert share("modes 20 % apart, by leg", boots, "modes") > 0.95
    assert share(first, 5, "bootstrap") < 0.93
    lasting = "the same, but they last for a boot"
    assert share(lasting, 5, "modes") < 0.5 < share(lasting, 10, "modes")


def test_the_table_can_be_measured_again(full, published):
    """With another seed, the rates differ from the published ones by chance only."""
    if full:
        measured = rates.measure_all(500, 120, seed=1000)
    else:
        names = tuple(rates.SCENARIOS)
        measured = rates.measure_all(60, 12, seed=1000, only=(names[0], names[5]))
    for key, counts in measured.items():
        for column, (hits, total) in counts.items():
            known, of = published[key][column]
            # Cells share effects of boots, so a run counts once.
            size = rates.CELLS if column in ("t", "hl", "tost_margin", "tost_zero") else 1
            n, m = total / size, of / size
            p = (hits + known + 1) / (total + of + 2)
            error = 4.5 * math.sqrt(p * (1 - p) * (1 / n + 1 / m)) + 1 / n
            assert hits / total == pytest.approx(known / of, abs=error), (key, column)
