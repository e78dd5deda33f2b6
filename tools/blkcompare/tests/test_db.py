# SPDX-License-Identifier: GPL-2.0
"""Tests of the database."""

import sqlite3
import subprocess
import sys

import pytest

from blkcompare.db import Database, DatabaseError, load_runs, plan_hash

MACHINE = {"id": "m", "name": "machine"}


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "x.db", create=True) as database:
        yield database


def start(database, cells=("c",)):
    run = database.start_run(
        {"drivers": {}},
        name="run",
        machine=MACHINE,
        versions={"fio": "3"},
        cells={c: {"jobs": 1} for c in cells},
    )
    boot = database.start_boot(run, boot_id="one", kernel="k", cmdline="c", facts={"f": 1})
    return run, boot


def add(database, cycle, position, **changes):
    values = {
        "iops": 1000.0,
        "bandwidth": 4e6,
        "latency": {"50": 9.0},
        "started": 1.0,
        "ended": 2.0,
        "covariates": {"temperature": None, "clock": 3.5},
    }
    return database.add_sample(cycle, position, **{**values, **changes})


def test_what_is_written_is_read(database):
    run, boot = start(database)
    cycle = database.start_cycle(run, boot, "c", 1, "ABCCBA", gate_before={"load": 0.1})
    for position in range(1, 7):
        add(database, cycle, position, iops=100.0 * position)
    database.end_cycle(cycle, "kept", gate_after={"load": 0.2})
    database.add_event(run, "warning", "text")
    database.end_run(run, "complete")
    (loaded,) = load_runs(database.path)
    assert (loaded.id, loaded.state, loaded.machine) == (run, "complete", MACHINE)
    assert loaded.hash == plan_hash({"drivers": {}})
    assert loaded.boots[0].facts == {"f": 1}
    (cycle,) = loaded.cycles
    assert cycle.gate == {"before": {"load": 0.1}, "after": {"load": 0.2}}
    assert [s.driver for s in cycle.samples] == ["A", "B", "A2", "A2", "B", "A"]
    assert [s.iops for s in cycle.samples] == [100, 200, 300, 400, 500, 600]
    assert cycle.samples[0].covariates == {"temperature": None, "clock": "3.5"}
    assert loaded.events[0][1:] == ("warning", "text")


def test_a_cycle_is_kept_only_if_it_is_whole(database):
    run, boot = start(database)
    cycle = database.start_cycle(run, boot, "c", 1, "ABBA")
    add(database, cycle, 1)
    with pytest.raises(DatabaseError, match="1 samples, its order is ABBA"):
        database.end_cycle(cycle, "kept")
    with pytest.raises(DatabaseError, match="CHECK"):
        database.end_cycle(cycle, "rejected")  # without a reason
    database.end_cycle(cycle, "rejected", reason="load")
    with pytest.raises(DatabaseError, match="is not running"):
        add(database, cycle, 2)
    with pytest.raises(DatabaseError, match="is not running"):
        database.end_cycle(cycle, "failed", reason="again")


def test_bad_samples_are_refused(database):
    run, boot = start(database)
    cycle = database.start_cycle(run, boot, "c", 1, "ABBA")
    add(database, cycle, 1)
    for position, changes in ((1, {}), (5, {}), (2, {"iops": 0.0}), (2, {"ended": 0.0})):
        with pytest.raises(DatabaseError):
            add(database, cycle, position, **changes)
    # A sample that is refused leaves no covariate.
    assert [c for s in load_runs(database.path)[0].cycles[0].samples for c in s.covariates] == [
        "clock",
        "temperature",
    ]


@pytest.mark.parametrize("order", ["AB", "ABAB", "AA", "", "AXXA"])
def test_orders_read_the_same_backwards(database, order):
    run, boot = start(database)
    with pytest.raises(ValueError, match="reads the same backwards"):
        database.start_cycle(run, boot, "c", 1, order)


def test_cells_are_those_of_the_plan(database):
    run, boot = start(database)
    with pytest.raises(DatabaseError, match="has no cell 'd'"):
        database.start_cycle(run, boot, "d", 1, "ABBA")


def test_resume_knows_what_is_left(database):
    run, boot = start(database, ("c", "d"))
    assert boot == database.start_boot(run, boot_id="one", kernel="", cmdline="", facts={})
    for cell in ("c", "d"):
        cycle = database.start_cycle(run, boot, cell, 1, "ABBA")
        if cell == "c":
            for position in range(1, 5):
                add(database, cycle, position)
            database.end_cycle(cycle, "kept")
    assert database.fail_interrupted_cycles(run) == 1
    assert database.kept_cycles(run, boot) == {("c", 1)}
    database.start_cycle(run, boot, "d", 1, "ABBA")
    assert database.attempts(run, boot, "d", 1) == 2
    second = database.start_boot(run, boot_id="two", kernel="", cmdline="", facts={})
    assert [b.number for b in database.find_boots(run)] == [1, 2]
    assert database.kept_cycles(run, second) == set()
    assert database.find_runs("running")[0][0] == run
    assert database.find_runs("complete") == []


def test_a_crash_keeps_what_was_written(tmp_path):
    """A process that is killed in the middle of a cycle leaves its samples, and a database."""
    script = """
import os, sys
from blkcompare.db import Database
d = Database(sys.argv[1], create=True)
r = d.start_run({}, name="n", machine={"id": "m", "name": "m"}, versions={}, cells={"c": {}})
b = d.start_boot(r, boot_id="1", kernel="", cmdline="", facts={})
c = d.start_cycle(r, b, "c", 1, "ABBA")
d.add_sample(c, 1, iops=1.0, bandwidth=1.0, latency={}, started=1.0, ended=2.0)
d._db.execute("BEGIN IMMEDIATE")
d._db.execute("DELETE FROM sample")
os.kill(os.getpid(), 9)
"""
    path = tmp_path / "x.db"
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert done.returncode == -9
    (run,) = load_runs(path)
    assert len(run.cycles[0].samples) == 1
    with Database(path) as database:
        assert database.fail_interrupted_cycles(run.id) == 1


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DatabaseError, match="there is no database"):
        Database(tmp_path / "none.db")
    text = tmp_path / "text.db"
    text.write_text("not a database, but longer than a header of SQLite would be, by far.\n" * 3)
    with pytest.raises(DatabaseError, match="not a database"):
        Database(text)
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(DatabaseError, match="not a database of blkcompare"):
        Database(other)
    newer = tmp_path / "newer.db"
    Database(newer, create=True).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DatabaseError, match="version 99"):
        Database(newer)


def test_a_plan_that_was_changed_is_noticed(database):
    start(database)
    connection = sqlite3.connect(database.path)
    connection.execute("UPDATE run SET plan = '{\"margin\":0.5}'")
    connection.commit()
    connection.close()
    with pytest.raises(DatabaseError, match="changed after its start"):
        load_runs(database.path)


def test_runs_need_a_machine_and_cells(database):
    for machine, cells in (({"id": "m"}, {"c": {}}), (MACHINE, {})):
        with pytest.raises(DatabaseError, match="needs a"):
            database.start_run({}, name="n", machine=machine, versions={}, cells=cells)
    run, _ = start(database)
    with pytest.raises(ValueError, match="with a reason"):
        database.end_run(run, "aborted")
    with pytest.raises(DatabaseError, match="no such row"):
        database.end_run("other", "complete")
