# SPDX-License-Identifier: GPL-2.0
"""Confidence intervals for the mean of a few numbers, by Student's t distribution."""

from math import atan, cos, pi, sin, sqrt
from statistics import mean, stdev


def within(t, freedom):
    """The probability that a t variable of so many degrees of freedom is between -t and t, by a finite sum."""
    angle = atan(t / sqrt(freedom))
    term, total = (sin(angle) * cos(angle), 0.0) if freedom % 2 else (sin(angle), 0.0)
    for k in range(2 + freedom % 2, freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (k - 1) / k
    if freedom % 2:
        return 2 / pi * (angle + total)
    return total


def quantile(probability, freedom):
    """The t for which `within` is that probability."""
    low, high = 0.0, 1.0
    while within(high, freedom) < probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < probability else (low, middle)
    return high


def interval(values, probability=0.95):
    """(lower bound, mean, upper bound); at least two values."""
    centre = mean(values)
    reach = quantile(probability, len(values) - 1) * stdev(values) / sqrt(len(values))
    return centre - reach, centre, centre + reach
