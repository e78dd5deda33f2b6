# SPDX-License-Identifier: GPL-2.0
"""Tests of stats.py against R, published tables and simulation."""

import math

import numpy as np
import pytest
from scipy import stats as sps

from blkcompare import stats


def test_t_interval_is_that_of_r(golden):
    for case in [*golden["one_sample"], golden["sleep"]]:
        estimate = stats.t_interval(case["x"])
        assert estimate.low == pytest.approx(case["low"], abs=1e-9)
        assert estimate.high == pytest.approx(case["high"], abs=1e-9)
        assert estimate.p == pytest.approx(case["p"], abs=1e-9)


def test_t_interval_is_that_of_student():
    # Student (1908) has the data; the interval is in many textbooks.
    hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    estimate = stats.t_interval(hours)
    assert (round(estimate.mean, 2), round(estimate.low, 2), round(estimate.high, 2)) == (
        1.58,
        0.70,
        2.46,
    )


def test_tost_is_two_one_sided_tests_of_r(golden):
    for case in golden["one_sample"]:
        assert stats.tost(case["x"], 0.05) == pytest.approx(case["tost"], abs=1e-9)


def test_hodges_lehmann_is_that_of_r(golden):
    for case in golden["one_sample"]:
        result = stats.hodges_lehmann(case["x"])
        assert result.estimate == pytest.approx(case["hl"], abs=1e-9)
        assert result.low == pytest.approx(case["wlow"], abs=1e-9)
        assert result.high == pytest.approx(case["whigh"], abs=1e-9)


def test_hodges_lehmann_says_which_confidence_it_has():
    assert stats.hodges_lehmann([1, 2, 3, 4, 5]).confidence == pytest.approx(0.9375)
    # Hollander and Wolfe: n = 9, 96.1 % between the 6th and the 40th of 45.
    assert stats.hodges_lehmann(np.arange(9.0)).confidence == pytest.approx(0.961, abs=5e-4)


def test_signed_rank_counts_are_those_of_r(golden):
    assert stats.signed_rank_counts(5).tolist() == golden["signed_rank"]


def test_benjamini_hochberg_is_that_of_r_and_of_the_paper(golden):
    adjusted = stats.benjamini_hochberg(golden["bh"]["p"])
    assert adjusted == pytest.approx(golden["bh"]["adjusted"], abs=1e-9)
    # Benjamini and Hochberg (1995) reject the first four of these at 5 %.
    assert (adjusted <= 0.05).tolist() == [True] * 4 + [False] * 11


def test_benjamini_hochberg_keeps_the_order_of_its_input():
    p = np.array([0.04, 0.001, 0.5, 0.02])
    assert stats.benjamini_hochberg(p)[::-1] == pytest.approx(stats.benjamini_hochberg(p[::-1]))
    with pytest.raises(ValueError, match="between 0 and 1"):
        stats.benjamini_hochberg([0.5, 1.5])


def test_variance_components_are_those_of_the_dyestuff_data(golden):
    # Davies and Goldsmith (1972): 1764 between batches, 2451 within.
    pilot = stats.variance_components(golden["dyestuff"]["boots"])
    assert pilot.between == pytest.approx(golden["dyestuff"]["between"], rel=1e-6)
    assert pilot.within == pytest.approx(golden["dyestuff"]["within"], rel=1e-6)
    assert (pilot.boots, pilot.cycles) == (6, 5)


def test_variance_components_with_unequal_boots(full):
    rng = np.random.default_rng(3)
    within, between = [], []
    for _ in range(2000 if full else 400):
        boots = [rng.normal(rng.normal(0, 2), 3, size) for size in (3, 5, 9, 4)]
        pilot = stats.variance_components(boots)
        within.append(pilot.within)
        between.append(pilot.between)
    assert np.mean(within) == pytest.approx(9, rel=0.1)
    # It is cut off at 0, so it is a little too large on average.
    assert 3.6 < np.mean(between) < 5.2


def test_power_of_t_is_that_of_r(golden):
    for case in golden["power"]:
        power = stats.t_power(case["delta"], case["sd"], case["n"])
        # R leaves out rejections on the wrong side only without strict=TRUE.
        assert power == pytest.approx(case["power"], abs=1e-6)


def test_power_of_tost_is_that_of_simulation(full):
    rng = np.random.default_rng(4)
    draws = 40_000 if full else 4000
    for boots, sd in ((5, 0.005), (10, 0.01), (20, 0.01)):
        x = rng.normal(0, sd, (draws, boots))
        t = (math.log1p(0.01) - np.abs(x.mean(axis=1))) / (x.std(axis=1, ddof=1) / boots**0.5)
        simulated = (t > sps.t.ppf(0.95, boots - 1)).mean()
        error = 4 * math.sqrt(0.25 / draws)
        assert stats.tost_power(0.01, sd, boots) == pytest.approx(simulated, abs=error)


def test_power_finds_the_fewest_boots():
    needs = stats.power(stats.Pilot(1e-4, 5e-5, 5, 20), 0.01, 0.01, cycles=(2, 10, 40))
    for need in needs:
        sd = math.sqrt(5e-5 + 1e-4 / need.cycles)
        effect = math.log1p(0.01)
        assert stats.t_power(effect, sd, need.boots_t) >= 0.9
        assert stats.t_power(effect, sd, need.boots_t - 1) < 0.9
        assert stats.tost_power(0.01, sd, need.boots_tost) >= 0.9
        assert stats.tost_power(0.01, sd, need.boots_tost - 1) < 0.9
    assert needs[0].boots_t > needs[-1].boots_t
    # More cycles cannot replace boots.
    assert stats.power(stats.Pilot(1e-4, 1e-2, 5, 20), 0.001, 0.01)[-1].boots_t is None


def test_power_refuses_a_pilot_of_one_boot():
    with pytest.raises(stats.TooFewBoots, match="one boot cannot tell"):
        stats.variance_components([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="two cycles in each boot"):
        stats.variance_components([[1.0], [2.0]])


def test_upper_pilot_is_exceeded_as_often_as_it_says(full):
    rng = np.random.default_rng(5)
    n = 3000 if full else 600
    above = 0
    for _ in range(n):
        boots = rng.normal(0, 0.02, (5, 1)) + rng.normal(0, 0.01, (5, 20))
        upper = stats.upper_pilot(stats.variance_components(boots))
        above += upper.variance(20) >= 0.02**2 + 0.01**2 / 20
    assert above / n == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / n))


def test_detectable_difference_inverts_power():
    effect = stats.detectable(0.01, 8)
    assert stats.t_power(effect, 0.01, 8) == pytest.approx(0.9, abs=1e-6)


def test_few_boots_give_no_interval():
    for call in (stats.t_interval, stats.hodges_lehmann, lambda x: stats.tost(x, 0.01)):
        with pytest.raises(stats.TooFewBoots, match="2 boots are too few"):
            call([0.1, 0.2])
    with pytest.raises(stats.TooFewBoots):
        stats.control_rule(np.zeros((3, 2)))
    assert stats.t_power(0.01, 0.001, 2) == stats.tost_power(0.01, 0.001, 2) == 0


def test_cycle_difference():
    assert stats.cycle_difference([100, 400], [200, 800]) == pytest.approx(math.log(2))
    for bad in (([], [1]), ([0.0], [1])):
        with pytest.raises(ValueError, match="leg of each driver|above zero"):
            stats.cycle_difference(*bad)


def test_boots_count_not_cycles():
    assert stats.boot_means([[1, 1, 1, 1], [5]]).tolist() == [1, 5]


# Bootstrap.


def test_bootstrap_of_single_cycles_is_that_of_scipy():
    x = np.array([0.01, 0.03, -0.02, 0.00, 0.05, 0.02, 0.01, -0.01])
    low, high = stats.hierarchical_bootstrap([[[v] for v in x]], draws=40_000)
    other = sps.bootstrap((x,), np.mean, n_resamples=40_000, method="percentile", rng=1)
    assert low == pytest.approx(other.confidence_interval.low, abs=5e-4)
    assert high == pytest.approx(other.confidence_interval.high, abs=5e-4)


def test_bootstrap_has_the_variance_of_each_level():
    rng = np.random.default_rng(6)
    machines = [
        [rng.normal(m + b, 1, 6 + i % 3) for i, b in enumerate(rng.normal(0, 2, 5))]
        for m in rng.normal(0, 3, 4)
    ]
    low, high = stats.hierarchical_bootstrap(machines, draws=40_000)
    # The variance of a plug-in draw, level by level.
    means = [np.array([b.mean() for b in boots]) for boots in machines]
    within = np.mean([np.mean([b.var() / b.size for b in boots]) / 5 for boots in machines]) / 4
    boots = np.mean([m.var() / m.size for m in means]) / 4
    top = np.var([m.mean() for m in means]) / 4
    width = 2 * 1.96 * math.sqrt(within + boots + top)
    assert high - low == pytest.approx(width, rel=0.05)


def test_bootstrap_treats_a_machine_drawn_twice_as_two():
    rng = np.random.default_rng(7)
    one = [list(rng.normal(0, 1, 20)) for _ in range(10)]
    alone = stats.hierarchical_bootstrap([one], draws=20_000)
    twice = stats.hierarchical_bootstrap([one, one], draws=20_000)
    ratio = (twice[1] - twice[0]) / (alone[1] - alone[0])
    assert ratio == pytest.approx(math.sqrt(0.5), abs=0.03)


def test_bootstrap_refuses_empty_levels():
    for bad in ([], [[]], [[[]]]):
        with pytest.raises(ValueError, match="needs a"):
            stats.hierarchical_bootstrap(bad)


# The control.


def shared_table(rng, cells, boots, share):
    common = rng.standard_normal((1, boots)) * math.sqrt(share)
    return 0.01 * (common + rng.standard_normal((cells, boots)) * math.sqrt(1 - share))


def test_control_limit_without_shared_effects_is_binomial():
    # If cells are independent and many, the limit is the quantile of a binomial distribution.
    rng = np.random.default_rng(8)
    control = stats.control_rule(shared_table(rng, 120, 12, 0.0))
    exact = sps.binom.ppf(0.999, 120, 0.05)
    assert exact <= control.limit <= exact + 3
    assert not control.failed


def test_control_limit_grows_with_what_cells_share():
    rng = np.random.default_rng(9)
    limits = [stats.control_rule(shared_table(rng, 60, 10, s)).limit for s in (0, 0.3, 0.6)]
    assert limits[0] < limits[1] <= limits[2] <= 60


def test_control_fails_rarely_without_a_difference(full):
    rng = np.random.default_rng(10)
    n = 1500 if full else 150
    for share in (0.0, 0.2, 0.6):
        failed = sum(
            stats.control_rule(shared_table(rng, 12, 5, share), draws=4000, rng=rng).failed
            for _ in range(n)
        )
        # 0.1 % is meant; the share is estimated from five boots.
        assert failed <= sps.binom.ppf(0.9999, n, 0.004), share


def test_control_fails_where_instances_differ():
    rng = np.random.default_rng(11)
    assert stats.control_rule(shared_table(rng, 60, 8, 0.05) + 0.02).failed
    # One cell of many may differ: that is chance, and the report names the cell.
    table = shared_table(rng, 60, 8, 0.05)
    table[7] += 0.1
    assert not stats.control_rule(table).failed


def test_shared_variance_is_estimated(full):
    rng = np.random.default_rng(12)
    n = 1000 if full else 200
    for share in (0.0, 0.4, 0.8):
        found = [stats.shared_variance(shared_table(rng, 60, 10, share))[0] for _ in range(n)]
        assert np.mean(found) == pytest.approx(share, abs=0.05)


# Error rates where the model holds.


@pytest.mark.parametrize("boots", [5, 10])
def test_interval_covers_and_tests_err_at_their_rates(full, boots):
    """No difference, 1 % and normal boot effects: t covers 95 %, TOST at the margin errs 5 %."""
    rng = np.random.default_rng(13 + boots)
    n = 20_000 if full else 2000
    for true in (0.0, math.log1p(0.01)):
        covered = equivalent = 0
        for _ in range(n):
            cycles = true + rng.normal(0, 0.006, (boots, 1)) + rng.normal(0, 0.01, (boots, 8))
            means = stats.boot_means(cycles)
            estimate = stats.t_interval(means)
            covered += estimate.low <= true <= estimate.high
            equivalent += stats.tost(means, 0.01) <= 0.05
        error = 4 * math.sqrt(0.05 * 0.95 / n)
        assert covered / n == pytest.approx(0.95, abs=error)
        if true:
            # At its margin TOST errs at most at its level.
            assert equivalent / n <= 0.05 + error
            assert equivalent / n >= 0.01 - error


def test_bh_errs_at_its_rate(full):
    rng = np.random.default_rng(20)
    n = 4000 if full else 400
    false = 0.0
    for _ in range(n):
        x = rng.normal(0, 0.01, (40, 6))
        x[:20] += 0.02
        p = [stats.t_interval(row).p for row in x]
        rejected = stats.benjamini_hochberg(p) <= 0.05
        false += rejected[20:].sum() / max(1, rejected.sum())
    # Half of the null hypotheses are true, so the rate is half of the level.
    assert false / n == pytest.approx(0.025, abs=0.008 if not full else 0.003)
