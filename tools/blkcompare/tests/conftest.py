# SPDX-License-Identifier: GPL-2.0
"""What the tests share: the size of simulations, and values that R computed."""

import json
import os
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether simulations have their full size."""
    return os.environ.get("FULL", "0") not in ("", "0")


@pytest.fixture(scope="session")
def golden() -> dict:
    return json.loads((DATA / "golden.json").read_text())
