# SPDX-License-Identifier: GPL-2.0
"""Modes: whether the samples of a driver come from several states, and which.

A mean over samples from two modes describes neither; it moves with their shares.  So where there
are modes, the report gives their shares for each boot, and the difference within a mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import diptest
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats as sps

from .stats import MIN_BOOTS, Estimate, t_interval

Array = NDArray[np.float64]

#: A mode has at least this share of the samples; what has less is a group of outliers.
MIN_SHARE = 0.05

#: Between two modes the density falls to this share of the lower peak, or further.  Two normals of
#: equal size whose means are three standard deviations apart fall to 64 %.
VALLEY = 0.7


# Dip test.


def dip_test(x: ArrayLike) -> tuple[float, float]:
    """Returns Hartigan's dip statistic, and its p-value for one mode."""
    x = np.asarray(x, float)
    if x.size < 4 or np.ptp(x) == 0:
        return 0.0, 1.0
    dip, p = diptest.diptest(x)
    return float(dip), float(p)


@dataclass(frozen=True)
class DipResult:
    """The dip test of samples that come in boots."""

    dip: float
    p_independent: float  # if the samples were independent
    p_pooled: float  # if boots also differ by normal effects
    p_within: float  # within boots, combined
    p: float  # of both together: small if there are modes within boots or between them


def dip_test_boots(
    boots: Sequence[ArrayLike], draws: int = 999, rng: np.random.Generator | None = None
) -> DipResult:
    """Tests whether samples that come in boots have more than one mode.

    Boots that merely differ make clusters, which the dip test of all samples takes for modes.  So
    it is compared with samples that have one mode within boots and normal effects of boots, with
    the variances of the data; the larger of the two p-values counts.  Modes that change within a
    boot are also found by a dip test in each boot, whatever the effects of boots are; these are
    combined by Fisher's method.  The p-value is twice the smaller of both.
    """
    rng = rng or np.random.default_rng(0)
    arrays = [np.asarray(boot, float) for boot in boots]
    arrays = [a for a in arrays if a.size]
    pooled = np.concatenate(arrays)
    dip, independent = dip_test(pooled)
    usable = [a for a in arrays if a.size >= 4]
    within = 1.0
    if usable:
        # The p-values of the table may be 0.
        logs = [math.log(max(dip_test(a)[1], 1e-6)) for a in usable]
        within = float(sps.chi2.sf(-2 * sum(logs), 2 * len(logs)))
    calibrated = independent
    if len(arrays) > 1 and independent < 0.2:
        calibrated = max(independent, _calibrated_p(arrays, dip, draws, rng))
    elif len(arrays) == 1:
        within = 1.0
        return DipResult(dip, independent, independent, within, independent)
    return DipResult(dip, independent, calibrated, within, min(1.0, 2 * min(within, calibrated)))


def _calibrated_p(
    arrays: Sequence[Array], dip: float, draws: int, rng: np.random.Generator
) -> float:
    """Returns how often one mode with normal effects of boots has at least this dip."""
    sizes = np.array([a.size for a in arrays])
    means = np.array([a.mean() for a in arrays])
    spread = sum(((a - a.mean()) ** 2).sum() for a in arrays) / max(1, sizes.sum() - sizes.size)
    between = max(0.0, means.var(ddof=1) - spread * (1 / sizes).mean())
    boot = np.repeat(np.arange(sizes.size), sizes)
    reached = 0
    for done in range(1, draws + 1):
        effects = rng.standard_normal(sizes.size) * math.sqrt(between)
        x = effects[boot] + rng.standard_normal(boot.size) * math.sqrt(spread)
        reached += diptest.dipstat(x) >= dip
        # Enough is known about a p-value that is large.
        if done == 99 and reached > 19:
            break
    return (reached + 1) / (done + 1)


# Mixtures of normals.


@dataclass(frozen=True)
class Mixture:
    """A mixture of normals; components are in order of their means."""

    weights: Array
    means: Array
    sds: Array
    equal: bool  # whether the components have one variance
    loglik: float
    n: int

    @property
    def k(self) -> int:
        return self.means.size

    @property
    def bic(self) -> float:
        """Smaller is better."""
        parameters = 2 * self.k - 1 + (1 if self.equal else self.k)
        return parameters * math.log(self.n) - 2 * self.loglik

    def density(self, x: ArrayLike) -> Array:
        x = np.asarray(x, float)[..., None]
        return (self.weights * sps.norm.pdf(x, self.means, self.sds)).sum(axis=-1)

    def peaks_and_valleys(self) -> tuple[Array, Array]:
        """Returns the local maxima of the density, and the minima between them."""
        # Narrow components need a grid of their own.
        grid = np.unique(
            np.concatenate(
                [m + s * np.linspace(-6, 6, 241) for m, s in zip(self.means, self.sds, strict=True)]
                + [np.linspace(self.means[0], self.means[-1], 801)]
            )
        )
        y = self.density(grid)
        rise = np.sign(np.diff(y))
        keep = np.concatenate([[True], rise != 0])
        grid, rise = grid[keep], rise[rise != 0]
        turn = np.diff(rise)
        peaks = grid[1:-1][turn < 0]
        valleys = grid[1:-1][turn > 0]
        inner = [v for v in valleys if peaks[0] < v < peaks[-1]]
        return peaks, np.array(inner)


def fit_mixture(x: ArrayLike, k: int, equal: bool) -> Mixture:
    """Fits a mixture of ``k`` normals by expectation and maximization, from several starts."""
    x = np.sort(np.asarray(x, float))
    n, spread = x.size, float(np.std(x))
    if n < 3 * k or spread == 0:
        raise ValueError("too few different samples for a mixture")
    z = (x - x.mean()) / spread
    if k == 1:
        return Mixture(
            np.ones(1), np.array([x.mean()]), np.array([spread]), equal,
            float(sps.norm.logpdf(x, x.mean(), spread).sum()), n,
        )  # fmt: skip
    # A few steps from each start tell which are worth more.
    begun = [_em(z, np.eye(k)[labels], equal, 30) for labels in _starts(z, k)]
    begun = sorted((fit for fit in begun if fit), key=lambda fit: -fit[0])
    ended = [_em(z, fit[4], equal, 1000) for fit in begun[:2]]
    ended = sorted((fit for fit in ended if fit), key=lambda fit: -fit[0])
    if not ended:
        raise ValueError("no mixture was found")
    loglik, weights, means, variances, _ = ended[0]
    order = np.argsort(means)
    return Mixture(
        weights[order],
        x.mean() + spread * means[order],
        spread * np.sqrt(variances[order]),
        equal,
        loglik - n * math.log(spread),
        n,
    )


def _starts(z: Array, k: int) -> list[NDArray[np.int_]]:
    """Returns partitions of sorted values: at quantiles, at the largest gaps, and unequal ones."""
    n = z.size
    cuts = [[round(n * i / k) for i in range(1, k)]]
    edge = max(1, round(MIN_SHARE * n))
    gaps = np.argsort(np.diff(z)[edge - 1 : n - edge])[::-1][: k - 1] + edge
    cuts.append(sorted(int(g) for g in gaps))
    for share in (0.1, 0.25):
        cuts.append([round(n * share)] + ([round(n * (1 - share))] if k == 3 else []))
        cuts.append(
            ([round(n * share)] if k == 3 else []) + [round(n * (1 - share / (2 if k == 3 else 1)))]
        )
    result = []
    for cut in cuts:
        if len(set(cut)) == k - 1 and all(0 < c < n for c in cut):
            result.append(np.searchsorted(np.array(cut), np.arange(n), side="right"))
    return result


def _em(
    z: Array, r: Array, equal: bool, steps: int
) -> tuple[float, Array, Array, Array, Array] | None:
    """Returns log likelihood, weights, means, variances, and the membership of each value.

    Returns None if a component vanishes.
    """
    n, before = z.size, -math.inf
    floor = 1e-6
    for _ in range(steps):
        mass = r.sum(axis=0)
        if (mass < 1.5).any():
            return None
        weights = mass / n
        means = (r * z[:, None]).sum(axis=0) / mass
        squares = (r * (z[:, None] - means) ** 2).sum(axis=0)
        variances = np.full(mass.size, squares.sum() / n) if equal else squares / mass
        variances = np.maximum(variances, floor)
        logs = (
            np.log(weights)
            - 0.5 * np.log(2 * np.pi * variances)
            - 0.5 * (z[:, None] - means) ** 2 / variances
        )
        top = logs.max(axis=1, keepdims=True)
        likelihood = np.exp(logs - top)
        total = likelihood.sum(axis=1, keepdims=True)
        loglik = float((top + np.log(total)).sum())
        r = likelihood / total
        if loglik - before < 1e-8 * abs(loglik):
            break
        before = loglik
    return loglik, weights, means, variances, r


def best_mixture(x: ArrayLike, largest: int = 3) -> Mixture:
    """Returns the mixture of 1 to ``largest`` normals with the best BIC."""
    fits = [fit_mixture(x, 1, True)]
    for k in range(2, largest + 1):
        for equal in (True, False):
            try:
                fit = fit_mixture(x, k, equal)
            except ValueError:
                continue
            # A narrow component of repeated values would have any likelihood.
            if fit.weights.min() >= MIN_SHARE / 2:
                fits.append(fit)
    return min(fits, key=lambda fit: fit.bic)


@dataclass(frozen=True)
class Modes:
    """The modes of samples: peaks of the density, in ascending order, and limits between them."""

    centres: Array
    limits: Array
    shares: Array
    mixture: Mixture

    @property
    def k(self) -> int:
        return self.centres.size

    def label(self, x: ArrayLike) -> NDArray[np.int_]:
        return np.searchsorted(self.limits, np.asarray(x, float), side="right")


def find_modes(x: ArrayLike) -> Modes:
    """Returns the modes of the best mixture.

    Two components that overlap have one peak, so they are one mode: a skewed or long-tailed
    distribution needs several normals, but has no modes.  A peak is joined to a neighbour if the
    density hardly falls between them, or if its share is below MIN_SHARE.
    """
    x = np.asarray(x, float)
    mixture = best_mixture(x)
    peaks, valleys = (list(a) for a in mixture.peaks_and_valleys())
    while len(peaks) > 1:
        heights, depths = mixture.density(peaks), mixture.density(valleys)
        falls = [d / min(heights[i], heights[i + 1]) for i, d in enumerate(depths)]
        shallow = int(np.argmax(falls))
        labels = np.searchsorted(np.array(valleys), x, side="right")
        shares = np.bincount(labels, minlength=len(peaks)) / x.size
        small = int(np.argmin(shares))
        if falls[shallow] > VALLEY:
            valley = shallow
            lower = valley if heights[valley] < heights[valley + 1] else valley + 1
        elif shares[small] < MIN_SHARE:
            # The valley on the side of the nearer peak goes.
            left = math.inf if small == 0 else peaks[small] - peaks[small - 1]
            right = math.inf if small == len(peaks) - 1 else peaks[small + 1] - peaks[small]
            valley, lower = (small - 1 if left <= right else small), small
        else:
            break
        del valleys[valley], peaks[lower]
    labels = np.searchsorted(np.array(valleys), x, side="right")
    shares = np.bincount(labels, minlength=len(peaks)) / x.size
    centres = np.array([x[labels == i].mean() for i in range(len(peaks))])
    return Modes(centres, np.array(valleys), shares, mixture)


def _without(modes: Modes, x: Array, valley: int) -> Modes:
    """Joins the modes on both sides of a valley."""
    limits = np.delete(modes.limits, valley)
    labels = np.searchsorted(limits, x, side="right")
    k = limits.size + 1
    return Modes(
        np.array([x[labels == i].mean() for i in range(k)]),
        limits,
        np.bincount(labels, minlength=k) / x.size,
        modes.mixture,
    )


def confirm_modes(
    modes: Modes,
    boots: Sequence[ArrayLike],
    alpha: float = 0.05,
    rng: np.random.Generator | None = None,
) -> Modes:
    """Joins neighbouring modes that the dip test of their samples does not tell apart.

    The mixture does not know about boots, so it takes boots that differ for modes.
    """
    rng = rng or np.random.default_rng(0)
    arrays = [np.asarray(boot, float) for boot in boots]
    x = np.concatenate(arrays)
    while modes.k > 1:
        worst = (0.0, 0)
        for valley in range(modes.k - 1):
            labels = [modes.label(a) for a in arrays]
            pair = [
                a[(own == valley) | (own == valley + 1)]
                for a, own in zip(arrays, labels, strict=True)
            ]
            worst = max(worst, (dip_test_boots(pair, rng=rng).p, valley))
        if worst[0] <= alpha:
            break
        modes = _without(modes, x, worst[1])
    return modes


def shares_by_boot(modes: Modes, boots: Sequence[ArrayLike]) -> Array:
    """Returns a row for each boot with the share of each mode."""
    return np.array(
        [np.bincount(modes.label(b), minlength=modes.k) / max(1, np.size(b)) for b in boots]
    )


def match_modes(a: Modes, b: Modes) -> list[tuple[int, int]]:
    """Pairs modes of two drivers: those that are nearest to each other.

    A pair has to be nearer than half the distance to the next mode of either driver, otherwise
    it is not known which mode corresponds to which.
    """
    pairs = []
    for i, centre in enumerate(a.centres):
        j = int(np.argmin(np.abs(b.centres - centre)))
        if int(np.argmin(np.abs(a.centres - b.centres[j]))) != i:
            continue
        gaps = [abs(c - centre) for n, c in enumerate(a.centres) if n != i]
        gaps += [abs(c - b.centres[j]) for n, c in enumerate(b.centres) if n != j]
        if not gaps or abs(b.centres[j] - centre) < min(gaps) / 2:
            pairs.append((i, j))
    return pairs


@dataclass(frozen=True)
class Within:
    """The difference B - A within a mode."""

    mode_a: int
    mode_b: int
    boots: int  # that have samples of both drivers in the mode
    mean: float
    estimate: Estimate | None  # None: too few boots


def difference_within(
    a: Modes, b: Modes, boots_a: Sequence[ArrayLike], boots_b: Sequence[ArrayLike]
) -> list[Within]:
    """Returns the differences within the modes that both drivers have.

    The lists have the samples (logarithms) of each boot, in the same order of boots.
    """
    result = []
    for i, j in match_modes(a, b):
        differences = []
        for x, y in zip(boots_a, boots_b, strict=True):
            x, y = np.asarray(x, float), np.asarray(y, float)
            x, y = x[a.label(x) == i], y[b.label(y) == j]
            if x.size and y.size:
                differences.append(y.mean() - x.mean())
        if differences:
            n = len(differences)
            estimate = t_interval(differences) if n >= MIN_BOOTS else None
            result.append(Within(i, j, n, float(np.mean(differences)), estimate))
    return result


# Order of time.


def runs_test(series: Sequence[ArrayLike]) -> tuple[float, float]:
    """Returns z and the two-sided p-value of the Wald-Wolfowitz runs test.

    Each series is cut at its own median; values that equal it are dropped.  Runs of several series
    are added up, as are their expectations and variances.  A negative z means fewer runs than in
    random order, as drift and slow changes of mode make.
    """
    runs = expected = variance = 0.0
    for x in series:
        x = np.asarray(x, float)
        above = (x > np.median(x))[x != np.median(x)] if x.size else np.zeros(0, bool)
        n1, n2 = int(above.sum()), int((~above).sum())
        n = n1 + n2
        if n1 == 0 or n2 == 0 or n < 2:
            continue
        runs += 1 + int((above[1:] != above[:-1]).sum())
        expected += 1 + 2 * n1 * n2 / n
        variance += 2 * n1 * n2 * (2 * n1 * n2 - n) / (n * n * (n - 1))
    if variance == 0:
        return 0.0, 1.0
    z = (runs - expected) / math.sqrt(variance)
    return z, float(2 * sps.norm.sf(abs(z)))


def lag1(
    series: Sequence[ArrayLike], draws: int = 999, rng: np.random.Generator | None = None
) -> tuple[float, float]:
    """Returns the lag-1 autocorrelation, and its p-value by permutation within each series."""
    rng = rng or np.random.default_rng(0)
    arrays = [np.asarray(x, float) for x in series]
    arrays = [a - a.mean() for a in arrays if a.size >= 3]
    squares = sum(float((a**2).sum()) for a in arrays)
    if squares == 0:
        return 0.0, 1.0
    r = sum(float((a[1:] * a[:-1]).sum()) for a in arrays) / squares
    permuted = np.zeros(draws)
    expected = 0.0
    for a in arrays:
        p = rng.permuted(np.tile(a, (draws, 1)), axis=1)
        permuted += (p[:, 1:] * p[:, :-1]).sum(axis=1)
        expected += -float((a**2).sum()) / a.size
    permuted, expected = permuted / squares, expected / squares
    # Permutations of a short series are negatively correlated on average.
    reached = (np.abs(permuted - expected) >= abs(r - expected) - 1e-12).sum()
    return r, float((reached + 1) / (draws + 1))
