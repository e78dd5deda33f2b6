# SPDX-License-Identifier: GPL-2.0
"""Tests of the gate."""

import fakes
import pytest

from blkcompare.gate import Gate, cpu_times

LIMITS = {"spin": 10, "steal": 1, "busy": 10, "window": 1, "wait": 0}


@pytest.fixture
def tree(tmp_path):
    return fakes.make(tmp_path)


def gate(tree, during="cpu  100 0 100 1100 0 0 0 0 0 0", slow=1.0, **limits):
    """A gate in whose window the times of the CPUs become ``during``."""
    made = Gate(
        tree.machine(),
        LIMITS | limits,
        spin=lambda: 0.02 * slow,
        sleep=lambda seconds: tree.write("/proc/stat", during),
    )
    made.best = 0.02
    return made


def test_quiet_machine(tree):
    measured, reason = gate(tree).wait()
    assert reason is None
    assert (measured["busy"], measured["steal"], measured["spin"]) == (0, 0, 0)


def test_other_programs(tree):
    measured, reason = gate(tree, "cpu  110 0 110 1080 0 0 0 0 0 0").wait()
    assert measured["busy"] == 20
    assert reason == "before: other programs use 20.0 % of the CPUs, the limit is 10 %"


def test_waiting_for_a_disk_is_idle_time(tree):
    assert gate(tree, "cpu  100 0 100 1000 100 0 0 0 0 0").wait()[1] is None


def test_stolen_time(tree):
    measured, reason = gate(tree, "cpu  100 0 100 1098 0 0 0 2 0 0").wait()
    assert measured["steal"] == 2
    assert "2.0 % of the CPUs' time is stolen" in reason


def test_slow_loop(tree):
    _, reason = gate(tree, slow=1.2).wait()
    assert "the loop is 20.0 % slower than at its best, the limit is 10 %" in reason


def test_calibration_takes_the_best(tree):
    times = iter([0.5, 0.3, 0.4] * 10)
    made = Gate(tree.machine(), LIMITS, spin=lambda: next(times))
    assert made.calibrate() == 0.3


def test_old_kernel_has_no_stolen_time(tree):
    tree.write("/proc/stat", "cpu  1 2 3 4")
    assert cpu_times(tree.machine()) == (10, 6, 0)
