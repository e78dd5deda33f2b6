# SPDX-License-Identifier: GPL-2.0
"""Tests of the reader of the public table of 2023."""

from pathlib import Path

import pytest

from blkcompare import reference
from blkcompare.db import DatabaseError

TABLE = Path(__file__).parent / "data" / "rnull-rfc-2023.csv"


def test_summary_counts_only_cells_that_apply():
    table = reference.read(TABLE)
    assert table.rows == 432
    read, write = table.summary("read"), table.summary("write")
    assert (read.cells, round(read.mean, 2), read.low, read.high) == (288, 0.32, -11.77, 6.79)
    assert (write.cells, round(write.mean, 2), write.low, write.high) == (288, 1.32, -4.52, 16.77)
    assert table.not_applicable == 288


def test_published_averages_count_cells_that_do_not_apply():
    table = reference.read(TABLE)
    for direction, published in (("read", 0.2), ("write", 0.9)):
        total = sum(entry.percent for entry in table.select(direction))
        assert round(total / table.rows, 1) == published


def test_cells_have_both_directions_where_the_workload_has():
    table = reference.read(TABLE)
    found = [e for e in table.entries if (e.jobs, e.workload) == (1, "randrw")]
    assert [e.direction for e in found] == ["read", "write"] * 12
    assert found[0].block_size == 4096
    assert found[0].c_iops == pytest.approx(250e3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("jobs,workload", "job,workload"), "the columns are not"),
        (("1,randread,4k", "1,trim,4k"), "2: 'trim' is not a workload"),
        (("1,randread,4k", "1,randread,4x"), "2: '4x' is not a block size"),
        (("2,randread,4k", "1,randread,4k"), "3: the cell is there twice"),
        (("1.54,0.00", "1.54,0.50"), "2: randread has a number for a write"),
        (("1.54,0.00", "fast,0.00"), "2: could not convert"),
    ],
)
def test_bad_tables_are_refused(tmp_path, change, message):
    bad = tmp_path / "bad.csv"
    bad.write_text(TABLE.read_text().replace(*change, 1))
    with pytest.raises(DatabaseError, match=message):
        reference.read(bad)
    with pytest.raises(DatabaseError, match="No such file"):
        reference.read(tmp_path / "none.csv")
