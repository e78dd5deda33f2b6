# SPDX-License-Identifier: GPL-2.0
"""The results of runs in an SQLite file: schema, writing during a run, reading for the report.

Units of all columns: times are seconds since the epoch, IOPS are operations per second, bandwidth
is bytes per second, latencies are nanoseconds.

A run consists of boots, a boot of cycles.  A cycle measures one cell with an order of drivers that
reads the same backwards, so that a linear drift cancels: "ABBA", "BAAB", and with the control as a
third driver "ABCCBA" and its five permutations.  The letters of an order are

=== ==================================================== ===============
A   the first driver                                     ``driver='A'``
B   the second driver                                    ``driver='B'``
C   a second instance of the first driver, the control   ``driver='A2'``
=== ==================================================== ===============
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

#: Marks an SQLite file as ours ("blkc").
APPLICATION_ID = 0x626C6B63
SCHEMA_VERSION = 1

#: The driver of a sample for each letter of an order.
DRIVER_OF_LETTER = {"A": "A", "B": "B", "C": "A2"}

SCHEMA = """
CREATE TABLE run (
    id       TEXT PRIMARY KEY,            -- UUID
    name     TEXT NOT NULL,               -- what the report calls the run
    plan     TEXT NOT NULL,               -- JSON, canonical (see plan_text())
    hash     TEXT NOT NULL,               -- SHA-256 of the plan
    machine  TEXT NOT NULL,               -- JSON: "id", "name", and facts
    versions TEXT NOT NULL,               -- JSON: tool -> version
    state    TEXT NOT NULL DEFAULT 'running'
             CHECK (state IN ('running', 'complete', 'aborted')),
    reason   TEXT,                        -- why it was aborted
    started  REAL NOT NULL,
    ended    REAL
);
CREATE TABLE boot (
    id       INTEGER PRIMARY KEY,
    run      TEXT NOT NULL REFERENCES run(id),
    number   INTEGER NOT NULL,            -- from 1
    boot_id  TEXT NOT NULL,               -- /proc/sys/kernel/random/boot_id
    kernel   TEXT NOT NULL,               -- uname -r -v
    cmdline  TEXT NOT NULL,
    facts    TEXT NOT NULL,               -- JSON: hashes, microcode, modules, ...
    started  REAL NOT NULL,
    UNIQUE (run, number),
    UNIQUE (run, boot_id)
);
CREATE TABLE cell (
    id       INTEGER PRIMARY KEY,
    run      TEXT NOT NULL REFERENCES run(id),
    name     TEXT NOT NULL,
    axes     TEXT NOT NULL,               -- JSON: axis -> value, in the order of the plan
    UNIQUE (run, name)
);
CREATE TABLE cycle (
    id       INTEGER PRIMARY KEY,
    run      TEXT NOT NULL REFERENCES run(id),
    boot     INTEGER NOT NULL REFERENCES boot(id),
    cell     INTEGER NOT NULL REFERENCES cell(id),
    number   INTEGER NOT NULL,            -- of the planned cycle in its boot and cell, from 1
    attempt  INTEGER NOT NULL,            -- from 1; a rejected cycle is run again
    "order"  TEXT NOT NULL,               -- see the module documentation
    state    TEXT NOT NULL DEFAULT 'running'
             CHECK (state IN ('running', 'kept', 'rejected', 'failed')),
    reason   TEXT,                        -- why it was rejected or failed
    gate     TEXT NOT NULL,               -- JSON: {"before": {...}, "after": {...}}
    started  REAL NOT NULL,
    ended    REAL,
    UNIQUE (boot, cell, number, attempt),
    CHECK (state NOT IN ('rejected', 'failed') OR reason IS NOT NULL)
);
CREATE TABLE sample (
    id        INTEGER PRIMARY KEY,
    cycle     INTEGER NOT NULL REFERENCES cycle(id),
    position  INTEGER NOT NULL,           -- in the order, from 1
    driver    TEXT NOT NULL CHECK (driver IN ('A', 'B', 'A2')),
    iops      REAL NOT NULL CHECK (iops > 0),
    bandwidth REAL NOT NULL CHECK (bandwidth >= 0),
    latency   TEXT NOT NULL,              -- JSON: percentile, "mean", "min", "max" -> ns
    raw       TEXT,                       -- path of fio's output, relative to the database
    started   REAL NOT NULL,
    ended     REAL NOT NULL,
    UNIQUE (cycle, position),
    CHECK (ended >= started)
);
CREATE TABLE covariate (
    sample   INTEGER NOT NULL REFERENCES sample(id),
    name     TEXT NOT NULL,
    value    TEXT,                        -- a number or text; NULL: the machine lacks it
    PRIMARY KEY (sample, name)
) WITHOUT ROWID;
CREATE TABLE event (
    id       INTEGER PRIMARY KEY,
    run      TEXT NOT NULL REFERENCES run(id),
    time     REAL NOT NULL,
    kind     TEXT NOT NULL,               -- 'resume', 'interrupt', 'restore', 'warning', ...
    text     TEXT NOT NULL
);
CREATE INDEX cycle_by_run ON cycle(run, cell, boot);
CREATE INDEX sample_by_cycle ON sample(cycle);
"""


class DatabaseError(Exception):
    """The file is not a database of this program, or its content is not usable."""


def plan_text(plan: Mapping[str, Any]) -> str:
    """Returns the canonical JSON of a plan, which is stored and hashed."""
    return json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plan_hash(plan: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a plan."""
    return hashlib.sha256(plan_text(plan).encode()).hexdigest()


@dataclass
class Sample:
    id: int
    position: int
    driver: str
    iops: float
    bandwidth: float
    latency: dict[str, float]
    raw: str | None
    started: float
    ended: float
    covariates: dict[str, str | None] = field(default_factory=dict)


@dataclass
class Cycle:
    id: int
    boot: int
    cell: str
    number: int
    attempt: int
    order: str
    state: str
    reason: str | None
    gate: dict[str, Any]
    started: float
    ended: float | None
    samples: list[Sample] = field(default_factory=list)


@dataclass
class Boot:
    id: int
    number: int
    boot_id: str
    kernel: str
    cmdline: str
    facts: dict[str, Any]
    started: float


@dataclass
class Run:
    """All that the database has about one run.  ``cycles`` are in order of time."""

    id: str
    name: str
    plan: dict[str, Any]
    hash: str
    machine: dict[str, Any]
    versions: dict[str, str]
    state: str
    reason: str | None
    started: float
    ended: float | None
    path: Path
    boots: list[Boot] = field(default_factory=list)
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    cycles: list[Cycle] = field(default_factory=list)
    events: list[tuple[float, str, str]] = field(default_factory=list)


class Database:
    """An open database.  Each method that writes is one transaction, which is on disk on return."""

    def __init__(
        self,
        path: Path | str,
        create: bool = False,
        readonly: bool = False,
        durable: bool = True,
    ):
        """Opens the file; with ``create``, a file that does not exist or is empty is set up.

        Without ``durable`` nothing waits for the disk, which is for simulated runs.
        """
        self.path = Path(path)
        exists = self.path.is_file() and self.path.stat().st_size > 0
        if not exists and not create:
            raise DatabaseError(f"{self.path}: there is no database")
        try:
            if readonly:
                uri = self.path.absolute().as_uri() + "?mode=ro"
                self._db = sqlite3.connect(uri, uri=True, isolation_level=None)
            else:
                self._db = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        except sqlite3.Error as error:
            raise DatabaseError(f"{self.path}: {error}") from error
        self._db.row_factory = sqlite3.Row
        try:
            if not exists:
                self._create()
            self._check()
            self._db.execute("PRAGMA foreign_keys = ON")
            if not readonly:
                # A reboot may follow at once, so a commit has to be on disk.
                self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
                if not durable:
                    self._db.execute("PRAGMA journal_mode = MEMORY")
        except sqlite3.Error as error:
            self._db.close()
            raise DatabaseError(f"{self.path}: {error}") from error
        except DatabaseError:
            self._db.close()
            raise

    def _create(self) -> None:
        with self._transaction():
            for statement in SCHEMA.split(";\n"):
                if statement.strip():
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check(self) -> None:
        if self._db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise DatabaseError(f"{self.path}: this is not a database of blkcompare")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise DatabaseError(
                f"{self.path}: the schema has version {version}, this program reads "
                f"{SCHEMA_VERSION}"
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing.

    def start_run(
        self,
        plan: Mapping[str, Any],
        *,
        name: str,
        machine: Mapping[str, Any],
        versions: Mapping[str, str],
        cells: Mapping[str, Mapping[str, Any]],
        started: float | None = None,
    ) -> str:
        """Adds a run and all cells of its plan, and returns the identifier of the run.

        ``cells`` maps the name of a cell to its axes, e.g. ``{"jobs": 1, "rw": "randread",
        "bs": 4096, "depth": 1}``.  ``machine`` has at least the keys ``id`` and ``name``.
        """
        if not machine.get("id") or not machine.get("name"):
            raise DatabaseError("the machine of a run needs an id and a name")
        if not cells:
            raise DatabaseError("a run needs a cell")
        run = str(uuid.uuid4())
        with self._transaction():
            self._db.execute(
                "INSERT INTO run (id, name, plan, hash, machine, versions, started)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    run,
                    name,
                    plan_text(plan),
                    plan_hash(plan),
                    json.dumps(dict(machine)),
                    json.dumps(dict(versions)),
                    time.time() if started is None else started,
                ),
            )
            for cell, axes in cells.items():
                self._db.execute(
                    "INSERT INTO cell (run, name, axes) VALUES (?, ?, ?)",
                    (run, cell, json.dumps(dict(axes))),
                )
        return run

    def end_run(
        self, run: str, state: str, reason: str | None = None, ended: float | None = None
    ) -> None:
        """Ends a run: ``state`` is 'complete' or 'aborted', the latter with a reason."""
        if state not in ("complete", "aborted") or (state == "aborted" and not reason):
            raise ValueError("a run ends 'complete', or 'aborted' with a reason")
        with self._transaction():
            self._one(
                "UPDATE run SET state = ?, reason = ?, ended = ? WHERE id = ?",
                (state, reason, time.time() if ended is None else ended, run),
            )

    def start_boot(
        self,
        run: str,
        *,
        boot_id: str,
        kernel: str,
        cmdline: str,
        facts: Mapping[str, Any],
        started: float | None = None,
    ) -> int:
        """Returns the id of the row of this boot, which is added unless ``boot_id`` is there."""
        with self._transaction():
            row = self._db.execute(
                "SELECT id FROM boot WHERE run = ? AND boot_id = ?", (run, boot_id)
            ).fetchone()
            if row:
                return row["id"]
            number = self._db.execute(
                "SELECT COALESCE(MAX(number), 0) + 1 FROM boot WHERE run = ?", (run,)
            ).fetchone()[0]
            return self._insert(
                "INSERT INTO boot (run, number, boot_id, kernel, cmdline, facts, started)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    run,
                    number,
                    boot_id,
                    kernel,
                    cmdline,
                    json.dumps(dict(facts)),
                    time.time() if started is None else started,
                ),
            )

    def start_cycle(
        self,
        run: str,
        boot: int,
        cell: str,
        number: int,
        order: str,
        *,
        gate_before: Mapping[str, Any] | None = None,
        started: float | None = None,
    ) -> int:
        """Adds a cycle in state 'running', and returns its id.

        ``number`` counts the planned cycles of a boot and cell from 1; if the cycle was run
        before and rejected, it gets the next attempt.
        """
        if order != order[::-1] or not set(order) <= set(DRIVER_OF_LETTER) or len(set(order)) < 2:
            raise ValueError(f"{order!r} is not an order of drivers that reads the same backwards")
        with self._transaction():
            row = self._db.execute(
                "SELECT id FROM cell WHERE run = ? AND name = ?", (run, cell)
            ).fetchone()
            if not row:
                raise DatabaseError(f"the plan of the run has no cell {cell!r}")
            attempt = self._db.execute(
                "SELECT COALESCE(MAX(attempt), 0) + 1 FROM cycle"
                " WHERE boot = ? AND cell = ? AND number = ?",
                (boot, row["id"], number),
            ).fetchone()[0]
            return self._insert(
                'INSERT INTO cycle (run, boot, cell, number, attempt, "order", gate, started)'
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run,
                    boot,
                    row["id"],
                    number,
                    attempt,
                    order,
                    json.dumps({"before": dict(gate_before or {}), "after": {}}),
                    time.time() if started is None else started,
                ),
            )

    def add_sample(
        self,
        cycle: int,
        position: int,
        *,
        iops: float,
        bandwidth: float,
        latency: Mapping[str, float],
        started: float,
        ended: float,
        raw: str | None = None,
        covariates: Mapping[str, object] | None = None,
    ) -> int:
        """Adds the sample at a position (from 1) of the order of a cycle, and its covariates.

        The driver follows from the order.  ``latency`` maps percentiles, as "50", "99", "99.9",
        and "mean", "min", "max" to nanoseconds.  A covariate that is None is recorded as absent.
        """
        with self._transaction():
            row = self._db.execute(
                'SELECT "order", state FROM cycle WHERE id = ?', (cycle,)
            ).fetchone()
            if not row or row["state"] != "running":
                raise DatabaseError(f"cycle {cycle} is not running")
            if not 1 <= position <= len(row["order"]):
                raise DatabaseError(f"the order {row['order']} has no position {position}")
            sample = self._insert(
                "INSERT INTO sample (cycle, position, driver, iops, bandwidth, latency, raw,"
                " started, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    cycle,
                    position,
                    DRIVER_OF_LETTER[row["order"][position - 1]],
                    iops,
                    bandwidth,
                    json.dumps(dict(latency)),
                    raw,
                    started,
                    ended,
                ),
            )
            self._db.executemany(
                "INSERT INTO covariate (sample, name, value) VALUES (?, ?, ?)",
                [
                    (sample, name, None if value is None else str(value))
                    for name, value in (covariates or {}).items()
                ],
            )
        return sample

    def end_cycle(
        self,
        cycle: int,
        state: str,
        *,
        reason: str | None = None,
        gate_after: Mapping[str, Any] | None = None,
        ended: float | None = None,
    ) -> None:
        """Ends a running cycle: 'kept', or 'rejected' (by the gate) or 'failed' with a reason.

        A cycle is kept only if each position of its order has a sample.
        """
        with self._transaction():
            row = self._db.execute(
                'SELECT state, gate, "order", (SELECT COUNT(*) FROM sample WHERE cycle = cycle.id)'
                " AS samples FROM cycle WHERE id = ?",
                (cycle,),
            ).fetchone()
            if not row or row["state"] != "running":
                raise DatabaseError(f"cycle {cycle} is not running")
            if state == "kept" and row["samples"] != len(row["order"]):
                raise DatabaseError(
                    f"cycle {cycle} has {row['samples']} samples, its order is {row['order']}"
                )
            gate = json.loads(row["gate"])
            gate["after"] = dict(gate_after or {})
            self._one(
                "UPDATE cycle SET state = ?, reason = ?, gate = ?, ended = ? WHERE id = ?",
                (
                    state,
                    reason,
                    json.dumps(gate),
                    time.time() if ended is None else ended,
                    cycle,
                ),
            )

    def add_event(self, run: str, kind: str, text: str, at: float | None = None) -> None:
        """Records what happened to a run, for the report."""
        with self._transaction():
            self._insert(
                "INSERT INTO event (run, time, kind, text) VALUES (?, ?, ?, ?)",
                (run, time.time() if at is None else at, kind, text),
            )

    # Resuming.

    def fail_interrupted_cycles(self, run: str, reason: str = "interrupted") -> int:
        """Ends the cycles that a crash or reboot left 'running', and returns their number."""
        with self._transaction():
            return self._db.execute(
                "UPDATE cycle SET state = 'failed', reason = ? WHERE run = ? AND state = 'running'",
                (reason, run),
            ).rowcount

    def kept_cycles(self, run: str, boot: int) -> set[tuple[str, int]]:
        """Returns the cell and number of each cycle of a boot that need not be run again."""
        rows = self._db.execute(
            "SELECT cell.name, cycle.number FROM cycle JOIN cell ON cell.id = cycle.cell"
            " WHERE cycle.run = ? AND cycle.boot = ? AND cycle.state = 'kept'",
            (run, boot),
        )
        return {(row[0], row[1]) for row in rows}

    def attempts(self, run: str, boot: int, cell: str, number: int) -> int:
        """Returns how many times a planned cycle was started."""
        return self._db.execute(
            "SELECT COUNT(*) FROM cycle JOIN cell ON cell.id = cycle.cell"
            " WHERE cycle.run = ? AND cycle.boot = ? AND cell.name = ? AND cycle.number = ?",
            (run, boot, cell, number),
        ).fetchone()[0]

    def find_runs(self, state: str | None = None) -> list[tuple[str, str, str, str]]:
        """Returns id, name, plan hash and state of the runs, oldest first."""
        rows = self._db.execute("SELECT id, name, hash, state FROM run ORDER BY started, rowid")
        return [tuple(row) for row in rows if state in (None, row["state"])]

    def find_boots(self, run: str) -> list[Boot]:
        """Returns the boots of a run in order of time."""
        rows = self._db.execute("SELECT * FROM boot WHERE run = ? ORDER BY number", (run,))
        return [
            Boot(
                row["id"],
                row["number"],
                row["boot_id"],
                row["kernel"],
                row["cmdline"],
                json.loads(row["facts"]),
                row["started"],
            )
            for row in rows
        ]

    # Reading.

    def load_run(self, run: str) -> Run:
        """Reads a run with all its cycles and samples."""
        row = self._db.execute("SELECT * FROM run WHERE id = ?", (run,)).fetchone()
        if not row:
            raise DatabaseError(f"{self.path}: there is no run {run}")
        if hashlib.sha256(row["plan"].encode()).hexdigest() != row["hash"]:
            raise DatabaseError(f"{self.path}: the plan of run {run} was changed after its start")
        result = Run(
            row["id"],
            row["name"],
            json.loads(row["plan"]),
            row["hash"],
            json.loads(row["machine"]),
            json.loads(row["versions"]),
            row["state"],
            row["reason"],
            row["started"],
            row["ended"],
            self.path,
        )
        result.boots = self.find_boots(run)
        boots = {boot.id: boot.number for boot in result.boots}
        names = {}
        for row in self._db.execute("SELECT * FROM cell WHERE run = ? ORDER BY id", (run,)):
            names[row["id"]] = row["name"]
            result.cells[row["name"]] = json.loads(row["axes"])
        cycles = {}
        for row in self._db.execute(
            "SELECT * FROM cycle WHERE run = ? ORDER BY started, id", (run,)
        ):
            cycles[row["id"]] = Cycle(
                row["id"],
                boots[row["boot"]],
                names[row["cell"]],
                row["number"],
                row["attempt"],
                row["order"],
                row["state"],
                row["reason"],
                json.loads(row["gate"]),
                row["started"],
                row["ended"],
            )
        result.cycles = list(cycles.values())
        samples = {}
        for row in self._db.execute(
            "SELECT sample.* FROM sample JOIN cycle ON cycle.id = sample.cycle"
            " WHERE cycle.run = ? ORDER BY sample.started, sample.id",
            (run,),
        ):
            samples[row["id"]] = Sample(
                row["id"],
                row["position"],
                row["driver"],
                row["iops"],
                row["bandwidth"],
                json.loads(row["latency"]),
                row["raw"],
                row["started"],
                row["ended"],
            )
            cycles[row["cycle"]].samples.append(samples[row["id"]])
        for row in self._db.execute(
            "SELECT covariate.* FROM covariate JOIN sample ON sample.id = covariate.sample"
            " JOIN cycle ON cycle.id = sample.cycle WHERE cycle.run = ?",
            (run,),
        ):
            samples[row["sample"]].covariates[row["name"]] = row["value"]
        result.events = [
            (row["time"], row["kind"], row["text"])
            for row in self._db.execute(
                "SELECT * FROM event WHERE run = ? ORDER BY time, id", (run,)
            )
        ]
        return result

    def _insert(self, statement: str, values: tuple[Any, ...]) -> int:
        return self._execute(statement, values).lastrowid

    def _one(self, statement: str, values: tuple[Any, ...]) -> None:
        if self._execute(statement, values).rowcount != 1:
            raise DatabaseError(f"{self.path}: there is no such row")

    def _execute(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except sqlite3.IntegrityError as error:
            raise DatabaseError(f"{self.path}: {error}") from error


def load_runs(path: Path | str) -> list[Run]:
    """Reads all runs of a database, oldest first."""
    with Database(path, readonly=True) as database:
        return [database.load_run(run) for run, _, _, _ in database.find_runs()]
