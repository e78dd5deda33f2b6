# SPDX-License-Identifier: GPL-2.0
"""Estimates, tests and planning for the difference between two drivers.

All differences are logarithms of a ratio, log(B/A).  The unit of inference is the boot: cycles of
one boot share its memory layout, so they are not independent, and more of them do not make an
interval over boots narrower than the boots allow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from scipy import stats as sps

#: With fewer boots there is neither an interval nor a verdict.
MIN_BOOTS = 3

Array = NDArray[np.float64]


class TooFewBoots(ValueError):
    """The data has too few boots for an interval."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval, and the p-value of no difference (two-sided)."""

    n: int
    mean: float
    sd: float
    low: float
    high: float
    p: float

    @property
    def se(self) -> float:
        return self.sd / math.sqrt(self.n)


def percent(log_ratio: float) -> float:
    """Converts log(B/A) to the difference in percent of A."""
    return 100.0 * math.expm1(log_ratio)


def cycle_difference(a: ArrayLike, b: ArrayLike) -> float:
    """Returns log(B/A) of one cycle: the mean over the legs of B minus that of A."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.size == 0 or b.size == 0:
        raise ValueError("a cycle needs a leg of each driver")
    if (a <= 0).any() or (b <= 0).any():
        raise ValueError("a ratio needs values above zero")
    return float(np.log(b).mean() - np.log(a).mean())


def boot_means(boots: Sequence[ArrayLike]) -> Array:
    """Returns one number for each boot: the mean over its cycles."""
    return np.array([np.mean(np.asarray(boot, float)) for boot in boots])


def _values(x: ArrayLike) -> Array:
    x = np.asarray(x, float)
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError("a list of finite numbers is needed")
    if x.size < MIN_BOOTS:
        raise TooFewBoots(f"{x.size} boots are too few for an interval, {MIN_BOOTS} are needed")
    return x


def t_interval(x: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Returns the mean over boots with its t-interval.  This is the headline."""
    x = _values(x)
    mean, sd = float(x.mean()), float(x.std(ddof=1))
    half = float(sps.t.ppf((1 + confidence) / 2, x.size - 1)) * sd / math.sqrt(x.size)
    return Estimate(x.size, mean, sd, mean - half, mean + half, _t_p(x, 0.0))


def _t_p(x: Array, null: float) -> float:
    """Returns the two-sided p-value that the mean is ``null``."""
    mean, sd = x.mean() - null, x.std(ddof=1)
    if sd == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * sps.t.sf(abs(mean) / (sd / math.sqrt(x.size)), x.size - 1))


def tost(x: ArrayLike, margin: float) -> float:
    """Returns the p-value of two one-sided t-tests for equivalence.

    ``margin`` is a fraction: the null hypothesis is that B/A lies outside 1/(1 + margin) to
    1 + margin, which is symmetric in the drivers.
    """
    if not 0 < margin:
        raise ValueError("the margin has to be above zero")
    x = _values(x)
    limit = math.log1p(margin)
    mean, se = float(x.mean()), float(x.std(ddof=1)) / math.sqrt(x.size)
    if se == 0:
        return 0.0 if abs(mean) < limit else 1.0
    return float(sps.t.sf((limit - abs(mean)) / se, x.size - 1))


# Hodges and Lehmann.


def signed_rank_counts(n: int) -> Array:
    """Returns in how many of the 2**n sign patterns the sum of positive ranks is 0, 1, ..."""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for rank in range(1, n + 1):
        counts[rank:] = counts[rank:] + counts[:-rank]
    return counts


@dataclass(frozen=True)
class HodgesLehmann:
    """A median of pairwise means, and the interval that inverts the signed-rank test."""

    estimate: float
    low: float
    high: float
    confidence: float  # which is reached: with few boots the test has only few levels


def hodges_lehmann(x: ArrayLike, confidence: float = 0.95) -> HodgesLehmann:
    """Returns the Hodges-Lehmann estimate over boots.

    Few boots do not reach the confidence: with five, the widest interval has 93.75 %.
    """
    x = _values(x)
    i, j = np.triu_indices(x.size)
    walsh = np.sort((x[i] + x[j]) / 2)
    cumulative = np.cumsum(signed_rank_counts(x.size)) / 2.0**x.size
    tail = (1 - confidence) / 2
    # The largest k with P(W < k) <= tail; at least 1, which is the whole range.
    k = max(1, int(np.searchsorted(cumulative, tail, side="right")))
    return HodgesLehmann(
        float(np.median(walsh)),
        float(walsh[k - 1]),
        float(walsh[walsh.size - k]),
        float(1 - 2 * cumulative[k - 1]),
    )


# Bootstrap.


def hierarchical_bootstrap(
    machines: Sequence[Sequence[ArrayLike]],
    confidence: float = 0.95,
    draws: int = 10_000,
    rng: np.random.Generator | None = None,
) -> tuple[float, float]:
    """Returns a percentile interval for the mean over machines of the mean over boots.

    ``machines`` has for each machine a list of boots, a boot is the differences of its cycles.
    Machines are drawn with replacement, then boots of each, then cycles of each.  A level with one
    element is kept as it is, so its variation is not in the interval.
    """
    rng = rng or np.random.default_rng(0)
    if not machines or any(len(boots) == 0 for boots in machines):
        raise ValueError("each machine needs a boot")
    means = np.empty((draws, len(machines)))
    chosen = rng.integers(len(machines), size=(draws, len(machines)))
    for machine, boots in enumerate(machines):
        arrays = [np.asarray(boot, float) for boot in boots]
        sizes = np.array([a.size for a in arrays])
        if (sizes == 0).any():
            raise ValueError("each boot needs a cycle")
        padded = np.zeros((len(arrays), sizes.max()))
        for row, a in zip(padded, arrays, strict=True):
            row[: a.size] = a
        # A machine that is drawn twice has to be resampled twice.
        where = np.argwhere(chosen == machine)
        for part in np.array_split(where, max(1, where.shape[0] * padded.size // 2_000_000)):
            picks = rng.integers(len(arrays), size=(part.shape[0], len(arrays)))
            size = sizes[picks][..., None]
            cycle = (rng.random((*picks.shape, sizes.max())) * size).astype(int)
            values = padded[picks[..., None], np.minimum(cycle, size - 1)]
            used = np.arange(sizes.max()) < size
            boot = np.where(used, values, 0).sum(axis=2) / size[..., 0]
            means[part[:, 0], part[:, 1]] = boot.mean(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means.mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


# Many cells.


def benjamini_hochberg(p: ArrayLike) -> Array:
    """Returns p-values adjusted for the false discovery rate."""
    p = np.asarray(p, float)
    if p.size == 0:
        return p
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p-values lie between 0 and 1")
    order = np.argsort(p)[::-1]
    scaled = p[order] * p.size / np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.minimum.accumulate(scaled))
    return adjusted


def shared_variance(table: ArrayLike) -> tuple[float, float]:
    """Returns the share of the variance over boots that the cells have in common, and its basis.

    ``table`` has a row for each cell and a column for each boot.  The basis is the variance of the
    means over standardized cells, from which the share follows; it is 1/cells without a share.
    """
    table = np.asarray(table, float)
    cells = table.shape[0]
    centred = table - table.mean(axis=1, keepdims=True)
    sd = centred.std(axis=1, ddof=1, keepdims=True)
    standard = np.divide(centred, sd, out=np.zeros_like(centred), where=sd > 0)
    basis = float(standard.mean(axis=0).var(ddof=1))
    return _share(basis, cells), basis


def _share(basis: ArrayLike, cells: int) -> ArrayLike:
    if cells < 2:
        return np.zeros_like(basis) if np.ndim(basis) else 0.0
    return np.clip((cells * np.asarray(basis) - 1) / (cells - 1), 0, 1)


@dataclass(frozen=True)
class Control:
    """The verdict on the A/A control."""

    cells: int
    boots: int
    rejections: int
    limit: int  # the 99.9 % point of the rejections under no difference
    shared: float  # the share of variance that cells have in common

    @property
    def failed(self) -> bool:
        return self.rejections > self.limit


def control_rule(
    table: ArrayLike,
    alpha: float = 0.05,
    quantile: float = 0.999,
    draws: int = 20_000,
    rng: np.random.Generator | None = None,
) -> Control:
    """Judges the A/A control, given a row of boot means for each cell.

    The number of cells whose t-test rejects is compared with a quantile of its distribution under
    no difference.  Cells of a boot share effects, so that they reject together.  The simulation
    shares as much variance as the data does, with the uncertainty of that: a control that is sound
    fails in 0.1 % of runs, whatever the cells share.
    """
    table = np.asarray(table, float)
    if table.ndim != 2 or table.shape[0] == 0 or not np.isfinite(table).all():
        raise ValueError("the control needs a number for each cell and boot")
    cells, boots = table.shape
    if boots < MIN_BOOTS:
        raise TooFewBoots(f"{boots} boots are too few for the control, {MIN_BOOTS} are needed")
    rng = rng or np.random.default_rng(0)
    rejections = sum(_t_p(row, 0.0) < alpha for row in table)
    share, basis = shared_variance(table)
    critical = sps.t.ppf(1 - alpha / 2, boots - 1)
    counts = np.empty(draws, int)
    chunk = max(1, 4_000_000 // (cells * boots))
    for start in range(0, draws, chunk):
        size = min(chunk, draws - start)
        drawn = _share(basis * (boots - 1) / rng.chisquare(boots - 1, size), cells)
        rho = np.asarray(drawn)[:, None, None]
        common = rng.standard_normal((size, 1, boots))
        own = rng.standard_normal((size, cells, boots))
        x = np.sqrt(rho) * common + np.sqrt(1 - rho) * own
        t = x.mean(axis=2) / (x.std(axis=2, ddof=1) / math.sqrt(boots))
        counts[start : start + size] = (np.abs(t) > critical).sum(axis=1)
    limit = int(np.quantile(counts, quantile, method="inverted_cdf"))
    return Control(cells, boots, rejections, limit, float(share))


# Planning.


@dataclass(frozen=True)
class Pilot:
    """Variances of log(B/A) in a pilot: of cycles within a boot, and of boots."""

    within: float
    between: float
    boots: int
    cycles: float  # per boot

    def variance(self, cycles: int) -> float:
        """The variance of the mean of a boot with this many cycles."""
        return self.between + self.within / cycles


def variance_components(boots: Sequence[ArrayLike]) -> Pilot:
    """Estimates the variances within and between boots, by analysis of variance."""
    arrays = [np.asarray(boot, float) for boot in boots]
    if len(arrays) < 2:
        raise TooFewBoots(
            "a pilot of one boot cannot tell how much boots differ; two are the least, and five"
            " give a usable answer"
        )
    sizes = np.array([a.size for a in arrays])
    if (sizes < 2).any():
        raise ValueError("a pilot needs two cycles in each boot, to tell how much they differ")
    total, k = sizes.sum(), len(arrays)
    grand = np.concatenate(arrays).mean()
    within = sum(((a - a.mean()) ** 2).sum() for a in arrays) / (total - k)
    between = sum(a.size * (a.mean() - grand) ** 2 for a in arrays) / (k - 1)
    effective = (total - (sizes**2).sum() / total) / (k - 1)
    return Pilot(
        float(within), max(0.0, float((between - within) / effective)), k, float(effective)
    )


def t_power(effect: float, sd: float, boots: int, alpha: float = 0.05) -> float:
    """Returns the power of the t-test over boots for a true log ratio of ``effect``."""
    if boots < MIN_BOOTS:
        return 0.0
    if sd == 0:
        return 1.0 if effect else 0.0
    shift = abs(effect) / sd * math.sqrt(boots)
    critical = sps.t.ppf(1 - alpha / 2, boots - 1)
    nodes, weights = _sample_sds(boots - 1)
    power = sps.norm.cdf(shift - critical * nodes) + sps.norm.cdf(-shift - critical * nodes)
    return float((weights * power).sum())


@functools.cache
def _legendre() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(200)


def _sample_sds(df: int, largest: float = math.inf) -> tuple[Array, Array]:
    """Returns nodes and weights to integrate over the standard deviation of a sample.

    The true one is 1.  The noncentral t would do, but its implementation in scipy fails far from
    its centre.
    """
    low, high = np.sqrt(sps.chi2.ppf([1e-15, 1 - 1e-15], df) / df)
    high = min(high, largest)
    if high <= low:
        return np.zeros(0), np.zeros(0)
    nodes, weights = _legendre()
    s = low + (high - low) * (nodes + 1) / 2
    return s, weights * (high - low) / 2 * 2 * df * s * sps.chi2.pdf(df * s * s, df)


def tost_power(margin: float, sd: float, boots: int, alpha: float = 0.05) -> float:
    """Returns the power of TOST over boots where there is no difference.

    Given the variance of the sample, the mean has to lie within the margin less a t quantile; that
    probability is integrated over the distribution of the variance.
    """
    if boots < MIN_BOOTS:
        return 0.0
    limit = math.log1p(margin)
    if sd == 0:
        return 1.0
    df = boots - 1
    quantile = sps.t.ppf(1 - alpha, df)
    se = sd / math.sqrt(boots)

    # No power remains where the t quantile alone exceeds the margin.
    nodes, weights = _sample_sds(df, limit / (quantile * se))
    return float((weights * (2 * sps.norm.cdf(limit / se - quantile * nodes) - 1)).sum())


def boots_needed(
    power: Callable[[int], float], target: float = 0.9, limit: int = 200
) -> int | None:
    """Returns the fewest boots for which ``power(boots)`` reaches the target, or None."""
    if power(limit) < target:
        return None
    low, high = MIN_BOOTS - 1, limit  # below the target, at the target
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= target else (middle, high)
    return high


@dataclass(frozen=True)
class Need:
    """What a plan has to have for a power of 90 %."""

    cycles: int
    boots_t: int | None  # for the headline test to find ``effect``
    boots_tost: int | None  # for TOST to confirm equivalence where there is no difference


def power(
    pilot: Pilot,
    effect: float,
    margin: float,
    cycles: Sequence[int] = (2, 5, 10, 20, 40),
    alpha: float = 0.05,
    target: float = 0.9,
    limit: int = 200,
) -> list[Need]:
    """Returns for each number of cycles how many boots both tests need.

    ``effect`` and ``margin`` are fractions.  A need of None is beyond ``limit`` boots.
    """
    if effect <= 0 or margin <= 0:
        raise ValueError("the effect and the margin have to be above zero")

    def need(count: int) -> Need:
        sd = math.sqrt(pilot.variance(count))
        return Need(
            count,
            boots_needed(lambda n: t_power(math.log1p(effect), sd, n, alpha), target, limit),
            boots_needed(lambda n: tost_power(margin, sd, n, alpha), target, limit),
        )

    return [need(count) for count in cycles]


def upper_pilot(pilot: Pilot, probability: float = 0.8) -> Pilot:
    """Returns the pilot with the upper confidence limit of its variance over boots.

    The variance over few boots is uncertain: with five, the true one is above 2.4 times the
    estimate in one pilot of five.
    """
    df = pilot.boots - 1
    factor = df / float(sps.chi2.ppf(1 - probability, df))
    of_boots = pilot.variance(max(1, round(pilot.cycles)))
    within = pilot.within / max(1, round(pilot.cycles))
    return Pilot(
        pilot.within, max(pilot.between, factor * of_boots - within), pilot.boots, pilot.cycles
    )


def detectable(sd: float, boots: int, alpha: float = 0.05, target: float = 0.9) -> float:
    """Returns the true log ratio that the headline test finds with the target power."""
    if boots < MIN_BOOTS:
        raise TooFewBoots(f"{boots} boots are too few")
    if sd == 0:
        return 0.0
    top = 25 * sd / math.sqrt(boots)
    if t_power(top, sd, boots, alpha) < target:
        return math.inf
    return float(optimize.brentq(lambda e: t_power(e, sd, boots, alpha) - target, 0, top))
