# SPDX-License-Identifier: GPL-2.0
"""The words in which a check reports its result; for Python, as report.sh has them for shells."""
import sys

failed = False


def report(name, faults=()):
    """The check passed unless there are faults; returns whether it did."""
    global failed
    faults = sorted(set(faults))
    for fault in faults:
        print(f"not ok {name} - {fault}")
    if not faults:
        print(f"ok {name}")
    sys.stdout.flush()
    failed = failed or bool(faults)
    return not faults


def finish():
    """Leaves with the status that the reports call for."""
    sys.exit(failed)
