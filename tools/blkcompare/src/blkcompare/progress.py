# SPDX-License-Identifier: GPL-2.0
"""Progress with the time left: a bar on a terminal, else lines for a log."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from .plan import duration

#: Seconds between lines in a log.
INTERVAL = 15.0


class Bar:
    """Counts the cycles of a round, and foresees when they end."""

    def __init__(
        self, progress: Progress, round_: int, plan: Mapping[str, Any], done: int, pending: int
    ):
        self.progress = progress
        self.round, self.boots = round_, plan["boots"]
        self.done, self.total = done, done + pending
        self.first = plan["estimate"]["cycle"]
        #: Seconds of the boots to come, beside the present one.
        self.later = plan["estimate"]["boot"] * max(plan["boots"] - round_, 0)
        self.started = time.monotonic()
        self.begun = done
        self.rejections = 0
        self.cell = ""
        self.last_line = -INTERVAL

    def left(self) -> float:
        """Returns the seconds left, by the pace so far or, at first, by the plan."""
        ended = self.done - self.begun
        pace = (time.monotonic() - self.started) / ended if ended else self.first
        return pace * (self.total - self.done) + self.later

    def text(self) -> str:
        rejected = f", {self.rejections} rejected" if self.rejections else ""
        return (
            f"boot {self.round} of {self.boots}, cycle {min(self.done + 1, self.total)} of"
            f" {self.total}: {self.cell}{rejected}, {duration(self.left())} left"
        )

    def next(self, cell: str) -> None:
        self.cell = cell
        self._show()

    def kept(self) -> None:
        self.done += 1
        self._show()

    def rejected(self, cell: str, reason: str) -> None:
        self.rejections += 1
        self.progress.say(f"{cell} is run again: {reason}")

    def _show(self) -> None:
        now = time.monotonic()
        if self.progress.task is not None:
            self.progress.rich.update(
                self.progress.task, completed=self.done, total=self.total, description=self.text()
            )
        elif now - self.last_line >= INTERVAL or self.done == self.total:
            self.last_line = now
            self.progress.say(self.text())


class Progress:
    """Speaks to the user."""

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream or sys.stderr
        self.rich: Any = None
        self.task: Any = None

    def say(self, text: str) -> None:
        if self.rich is not None:
            self.rich.console.print(text, markup=False, highlight=False)
        else:
            print(f"blkcompare: {text}", file=self.stream, flush=True)

    @contextlib.contextmanager
    def show(self, round_: int, plan: Mapping[str, Any], done: int, pending: int) -> Iterator[Bar]:
        bar = Bar(self, round_, plan, done, pending)
        if not self.stream.isatty():
            yield bar
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as RichProgress
        except ImportError:
            yield bar  # Measuring needs the standard library only.
            return
        columns = (BarColumn(bar_width=30), TextColumn("{task.description}", markup=False))
        with RichProgress(*columns, console=Console(file=self.stream)) as self.rich:
            self.task = self.rich.add_task("", total=done + pending, completed=done)
            try:
                yield bar
            finally:
                self.task = None
        self.rich = None
