# SPDX-License-Identifier: GPL-2.0
"""Compare two block drivers in time, with intervals, plots and modes."""

__version__ = "0.1.0"
