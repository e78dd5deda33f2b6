# SPDX-License-Identifier: GPL-2.0
"""Tests of modes.py against R and simulation."""

import math

import numpy as np
import pytest

from blkcompare import modes


def test_dip_is_that_of_r(golden):
    for case in golden["dip"]:
        dip, p = modes.dip_test(case["x"])
        assert dip == pytest.approx(case["dip"], abs=1e-9)
        assert p == pytest.approx(case["p"], abs=2e-3)


def test_dip_of_constant_or_few_samples():
    assert modes.dip_test([1.0] * 20) == (0.0, 1.0)
    assert modes.dip_test([1.0, 2.0]) == (0.0, 1.0)


def test_dip_rejects_one_mode_no_oftener_than_its_level(full):
    rng = np.random.default_rng(1)
    n = 5000 if full else 500
    draw = {
        "normal": lambda: rng.normal(0, 1, 80),
        "uniform": lambda: rng.uniform(0, 1, 80),  # the worst case of one mode
        "skewed": lambda: rng.exponential(1, 80),
        "long tails": lambda: rng.standard_t(2, 80),
    }
    for name, one in draw.items():
        rate = np.mean([modes.dip_test(one())[1] <= 0.05 for _ in range(n)])
        assert rate <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / n), name


def test_dip_finds_two_separated_modes(full):
    rng = np.random.default_rng(2)
    n = 500 if full else 100
    found = sum(
        modes.dip_test(np.concatenate([rng.normal(0, 1, 40), rng.normal(5, 1, 40)]))[1] <= 0.05
        for _ in range(n)
    )
    assert found / n > 0.98


def boots_with_effects(rng, boots, size, sd_boot):
    return [rng.normal(effect, 1, size) for effect in rng.normal(0, sd_boot, boots)]


def test_dip_of_boots_keeps_its_level_where_boots_differ(full):
    rng = np.random.default_rng(3)
    n = 1000 if full else 120
    for sd in (0.0, 1.0, 5.0):
        naive = tested = 0
        for _ in range(n):
            boots = boots_with_effects(rng, 6, 20, sd)
            result = modes.dip_test_boots(boots, draws=199, rng=rng)
            tested += result.p <= 0.05
            naive += result.p_independent <= 0.05
        assert tested / n <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / n), sd
    # The plain dip test takes six boots for six modes.
    assert naive / n > 0.5


def test_dip_of_boots_finds_modes_within_and_between_boots(full):
    rng = np.random.default_rng(4)
    n = 200 if full else 30
    within = between = 0
    for _ in range(n):
        boots = [np.where(rng.random(24) < 0.5, 0, 6) + rng.normal(0, 1, 24) for _ in range(6)]
        within += modes.dip_test_boots(boots, draws=199, rng=rng).p <= 0.05
        # Ten boots in one mode, ten in the other.
        boots = [rng.normal(8 * (i % 2), 1, 20) for i in range(20)]
        between += modes.dip_test_boots(boots, draws=199, rng=rng).p <= 0.05
    assert within / n > 0.95
    assert between / n > 0.6


def test_one_boot_has_the_plain_dip_test():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(0, 1, 30), rng.normal(6, 1, 30)])
    assert modes.dip_test_boots([x]).p == pytest.approx(modes.dip_test(x)[1])


def test_mixtures_are_those_of_mclust(golden):
    for case in golden["mixture"]:
        for k in (1, 2, 3):
            for equal, name in ((True, "E"), (False, "V")):
                theirs = case["bic"][name][k - 1]
                if theirs == "NA":
                    continue
                # mclust has the other sign; a better optimum is welcome.
                assert -modes.fit_mixture(case["x"], k, equal).bic >= theirs - 0.05
                if (k, equal) in ((1, True), (2, True), (2, False)):
                    bic = modes.fit_mixture(case["x"], k, equal).bic
                    assert bic == pytest.approx(-theirs, abs=0.5)
        two = modes.fit_mixture(case["x"], 2, True)
        assert two.means == pytest.approx(case["two"]["means"], rel=2e-3)
        assert two.sds[0] == pytest.approx(case["two"]["sd"], rel=5e-3)
        assert two.weights == pytest.approx(case["two"]["weights"], abs=5e-3)


def test_likelihood_is_that_of_the_density(golden):
    x = np.array(golden["mixture"][0]["x"])
    fit = modes.fit_mixture(x, 2, False)
    assert np.log(fit.density(x)).sum() == pytest.approx(fit.loglik, abs=1e-4)


def test_bic_counts_separated_normals(full):
    rng = np.random.default_rng(6)
    n = 100 if full else 15
    for k in (1, 2, 3):
        components = peaks = 0
        for _ in range(n):
            x = np.concatenate([rng.normal(8 * i, 1, 60) for i in range(k)])
            found = modes.find_modes(x)
            components += found.mixture.k == k
            peaks += found.k == k
        assert components / n >= 0.7, k
        assert peaks / n >= 0.85, k


def test_skew_and_outliers_are_not_modes():
    rng = np.random.default_rng(7)
    skewed = modes.find_modes(rng.gamma(3, 1, 400))
    assert skewed.mixture.k > 1 and skewed.k == 1
    x = np.concatenate([rng.normal(0, 1, 200), [30.0, 31.0]])
    assert modes.find_modes(x).k == 1
    # Enough for a component of the mixture, and too few for a mode.
    x = np.concatenate([rng.normal(0, 1, 200), rng.normal(30, 1, 8)])
    found = modes.find_modes(x)
    assert found.mixture.k == 2 and found.k == 1
    x = np.concatenate([rng.normal(0, 1, 200), rng.normal(30, 1, 20)])
    assert modes.find_modes(x).k == 2


def test_boots_that_differ_are_not_modes_of_a_mixture():
    """Two modes in each boot, and boots that differ: the mixture finds modes of boots as well."""
    rng = np.random.default_rng(11)
    n = 15
    joined = right = 0
    for _ in range(n):
        boots = [
            np.where(rng.random(20) < 0.5, 0, 20) + rng.normal(effect, 0.4, 20)
            for effect in rng.normal(0, 1.5, 5)
        ]
        found = modes.find_modes(np.concatenate(boots))
        confirmed = modes.confirm_modes(found, boots, rng=rng)
        assert confirmed.shares.sum() == pytest.approx(1)
        assert confirmed.k <= found.k
        joined += found.k > 2
        right += confirmed.k == 2
    assert joined > n // 3
    assert right >= 0.8 * n


def test_modes_shares_and_labels():
    rng = np.random.default_rng(8)
    first, second = rng.normal(0, 0.1, 75), rng.normal(5, 0.1, 25)
    found = modes.find_modes(np.concatenate([first, second]))
    assert found.centres == pytest.approx([0, 5], abs=0.1)
    assert found.shares == pytest.approx([0.75, 0.25])
    assert found.label([0.0, 5.0]).tolist() == [0, 1]
    shares = modes.shares_by_boot(found, [first, np.concatenate([first[:10], second[:10]])])
    assert shares.tolist() == [[1, 0], [0.5, 0.5]]


def test_difference_within_a_mode_ignores_shares():
    """B is 2 % faster within each mode, but more often in the slow one."""
    rng = np.random.default_rng(9)
    boots_a, boots_b = [], []
    for _ in range(6):
        slow_a, slow_b = rng.random(40) < 0.2, rng.random(40) < 0.8
        boots_a.append(rng.normal(0, 0.005, 40) - 0.3 * slow_a)
        boots_b.append(rng.normal(0.02, 0.005, 40) - 0.3 * slow_b)
    a = modes.find_modes(np.concatenate(boots_a))
    b = modes.find_modes(np.concatenate(boots_b))
    assert np.mean(np.concatenate(boots_b)) < np.mean(np.concatenate(boots_a))
    result = modes.difference_within(a, b, boots_a, boots_b)
    assert len(result) == 2
    for within in result:
        assert within.boots == 6
        assert within.mean == pytest.approx(0.02, abs=0.004)
        assert within.estimate.low < 0.02 < within.estimate.high


def fake_modes(centres):
    mixture = modes.fit_mixture(np.arange(10.0), 1, True)
    return modes.Modes(np.array(centres), np.zeros(len(centres) - 1), np.ones(1), mixture)


def test_modes_that_cannot_be_matched_are_not():
    assert modes.match_modes(fake_modes([0, 10]), fake_modes([0.1, 10.1])) == [(0, 0), (1, 1)]
    assert modes.match_modes(fake_modes([0, 10]), fake_modes([9.5])) == [(1, 0)]
    assert modes.match_modes(fake_modes([0, 10]), fake_modes([5.0])) == []
    assert modes.match_modes(fake_modes([0.0]), fake_modes([7.0])) == [(0, 0)]


def test_runs_and_autocorrelation_are_those_of_r(golden):
    for case in golden["runs"]:
        z, p = modes.runs_test([case["x"]])
        assert z == pytest.approx(case["z"], abs=1e-9)
        assert p == pytest.approx(case["p"], abs=1e-9)
        assert modes.lag1([case["x"]], draws=9)[0] == pytest.approx(case["lag1"], abs=1e-9)


def test_order_tests_keep_their_level_and_find_drift(full):
    rng = np.random.default_rng(10)
    n = 1500 if full else 200
    runs = auto = drift_runs = drift_auto = 0
    for _ in range(n):
        series = [rng.normal(0, 1, 12) for _ in range(5)]
        runs += modes.runs_test(series)[1] <= 0.05
        auto += modes.lag1(series, draws=199, rng=rng)[1] <= 0.05
        series = [s + np.linspace(-2, 2, 12) for s in series]
        drift_runs += modes.runs_test(series)[1] <= 0.05
        drift_auto += modes.lag1(series, draws=199, rng=rng)[1] <= 0.05
    limit = 0.05 + 4 * math.sqrt(0.05 * 0.95 / n)
    assert runs / n <= limit + 0.01  # the normal approximation is not exact
    assert auto / n <= limit
    assert drift_runs / n > 0.9 and drift_auto / n > 0.9


def test_order_tests_of_constant_samples():
    assert modes.runs_test([[1.0, 1.0, 1.0]]) == (0.0, 1.0)
    assert modes.lag1([[1.0, 1.0, 1.0]]) == (0.0, 1.0)
