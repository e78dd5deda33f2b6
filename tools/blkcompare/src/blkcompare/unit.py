# SPDX-License-Identifier: GPL-2.0
"""The systemd unit that goes on with a run after each reboot, and reboots until it is complete."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .machine import Machine

UNIT = "blkcompare.service"
PATH = f"/etc/systemd/system/{UNIT}"

TEXT = """\
# Made by "blkcompare run --install-unit", and removed when the run ends.
[Unit]
Description=blkcompare, {directory}
After=multi-user.target

[Service]
Type=exec
{environment}# ExecStartPre counts as a part of the start.
TimeoutStartSec=infinity
ExecStartPre=/bin/sleep {settle}
ExecStart={python} -m blkcompare --state {state} run --reboot {directory}
# The machine is restored first.
TimeoutStopSec=120
KillMode=mixed

[Install]
WantedBy=multi-user.target
"""


def _quote(word: str | Path, variables: bool = True) -> str:
    """Quotes a word for ExecStart, or for a setting in which a $ stands for itself."""
    text = str(word).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + (text.replace("$", "$$") if variables else text) + '"'


def text(directory: Path, state: Path, settle: int) -> str:
    # Where the package is not installed, but found by a path.
    path = os.environ.get("PYTHONPATH")
    return TEXT.format(
        environment=f"Environment={_quote(f'PYTHONPATH={path}', False)}\n" if path else "",
        directory=_quote(directory.resolve()),
        state=_quote(state.resolve()),
        python=_quote(sys.executable),
        settle=settle,
    )


def install(machine: Machine, directory: Path, settle: int = 60) -> None:
    """Installs and enables the unit."""
    machine.path(PATH).write_text(text(directory, machine.state_dir, settle))
    machine.command(["systemctl", "daemon-reload"])
    machine.command(["systemctl", "enable", UNIT])


def remove(machine: Machine) -> bool:
    """Disables and removes the unit, if it is there; returns whether it was."""
    path = machine.path(PATH)
    if not path.exists():
        return False
    machine.command(["systemctl", "disable", UNIT])
    path.unlink()
    machine.command(["systemctl", "daemon-reload"])
    return True
