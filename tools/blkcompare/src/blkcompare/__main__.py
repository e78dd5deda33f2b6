# SPDX-License-Identifier: GPL-2.0
"""Runs the program as ``python -m blkcompare``."""

import sys

from .cli import main

sys.exit(main())
