# SPDX-License-Identifier: GPL-2.0
"""Tests of the plan."""

import fakes
import pytest

from blkcompare import plan
from blkcompare.config import ConfigError, load_config
from blkcompare.covariates import cpus


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3, 4, 5})
    tree = fakes.make(tmp_path)
    tree.write("/proc/meminfo", "MemTotal: 90000000 kB\nMemAvailable: 80000000 kB\n")
    return tree


def make(tree, *overrides, preset=None, drivers=("null_blk", "rnull"), seed=1):
    names = [f"drivers.{side}.driver={name}" for side, name in zip("AB", drivers, strict=True)]
    config = load_config(preset, [], [*names, *overrides])
    return plan.make_plan(config, tree.machine(), seed)


def test_public_matrix_has_120_cells(tree):
    made = make(tree, preset="matrix")
    assert len(made["cells"]) == 120
    assert {cell["axes"]["jobs"] for cell in made["cells"]} == {1, 2, 6}
    assert {cell["axes"]["bs"] for cell in made["cells"]} == {
        4 << 10, 32 << 10, 256 << 10, 1 << 20, 16 << 20
    }  # fmt: skip
    assert len({cell["name"] for cell in made["cells"]}) == 120


def test_presets_keep_their_promises(tree):
    smoke, core = make(tree, preset="smoke"), make(tree, preset="core")
    assert smoke["estimate"]["total"] <= 120
    assert len(core["cells"]) == 12
    assert 3600 <= core["estimate"]["total"] <= 7200


def test_cell_names_can_be_read_again(tree):
    for cell in make(tree, preset="matrix")["cells"]:
        assert plan.parse_cell(cell["name"]) == cell["axes"]


@pytest.mark.parametrize(
    "name", ["randread-4k-d8", "walk-4k-d8-j1", "read-4k-d0-j1", "read-4q-d1-j1"]
)
def test_bad_cells(name):
    with pytest.raises(ConfigError):
        plan.parse_cell(name)


def test_same_configuration_and_seed_give_the_same_plan(tree):
    assert make(tree) == make(tree)
    assert make(tree, seed=None)["seed"] != make(tree, seed=None)["seed"]


def test_cells_that_do_not_fit_are_named(tree, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    made = make(tree, preset="matrix")
    assert len(made["cells"]) == 80
    (sentence,) = [s for s in made["not_measured"] if "cells" in s]
    assert sentence.startswith("40 of 120 cells are not measured")
    assert "6 jobs with a CPU each, of which there are 2" in sentence
    with pytest.raises(ConfigError, match="40 of 120"):
        make(tree, "matrix.unfit=refuse", preset="matrix")


def test_memory_limits_cells(tree):
    tree.write("/proc/meminfo", "MemAvailable: 15000000 kB\n")
    made = make(tree, preset="matrix")
    names = {cell["name"] for cell in made["cells"]}
    assert "randread-16m-d128-j6" not in names and "randread-16m-d8-j1" in names
    with pytest.raises(ConfigError, match="3 disks of 8g take 24.0 GiB of memory"):
        make(tree, "disk.size=8G")


def test_disks_without_memory_are_not_filled(tree):
    tree.write("/proc/meminfo", "MemAvailable: 1500000 kB\n")
    made = make(tree, "disk.memory=false", preset="core")
    assert not made["fill"]
    assert make(tree, "disk.size=64M", preset="core")["fill"]


def test_cells_by_engine_and_block(tree):
    with pytest.raises(ConfigError, match="psync has a depth of 1"):
        make(tree, "load.engine=psync", "matrix.cells=read-4k-d8-j1")
    with pytest.raises(ConfigError, match="blocks of 4096"):
        make(tree, "matrix.cells=read-512-d8-j1")
    assert make(tree, "matrix.cells=read-512-d8-j1", "disk.block_size=512")["cells"]
    with pytest.raises(ConfigError, match="disk.discard is off"):
        make(tree, "matrix.cells=randtrim-4k-d8-j1")


def test_drivers_that_cannot_be_compared(tree):
    with pytest.raises(ConfigError, match="same module null_blk"):
        make(tree, drivers=("null_blk", "rnull-dropin"))
    with pytest.raises(ConfigError, match="does not say which driver A is"):
        make(tree, "drivers.A.driver=")


def device(tree, *overrides):
    tree.add_disk("sdx", sectors=9)
    tree.write("/sys/class/block/sdx/wwid", "naa.5")
    both = ["drivers.A.device=/dev/sdx", "drivers.B.device=/dev/sdx"]
    return make(tree, *both, *overrides, drivers=("device", "device"))


def test_existing_device_is_read_only_unless_it_is_named(tree):
    with pytest.raises(ConfigError, match="writes to /dev/sdx, whose data would be lost"):
        device(tree)
    made = device(tree, "matrix.rw=randread")
    assert not made["writes"] and not made["fill"]
    made = device(tree, "disk.overwrite=/dev/sdx")
    assert made["writes"]
    assert "DESTROYS THE DATA on /dev/sdx" in made["changes"]
    assert made["devices"]["A"]["identity"] == {"sectors": "9", "serial": "naa.5"}


def test_plan_says_what_it_changes(tree):
    text = plan.describe(make(tree, "machine.clock_khz=2000000", preset="core"))
    for words in (
        "loads the module null_blk nr_devices=0",
        "loads the module rnull_mod nr_devices=0",
        "makes /dev/blkcompare_c for null_blk (control): size=4096 memory_backed=1",
        f"sets {fakes.CPU}/cpufreq/boost from 1 to 0",
        "policy1/scaling_governor from powersave to performance",
        "equivalence within 1 %",
        "in all",
        "not recorded, because the machine lacks it: temperature",
    ):
        assert words in text


def test_plan_names_what_it_compares(tree):
    made = make(tree, preset="core")
    assert made["headline"] == {"metric": "iops", "test": "t", "beside": ["p50", "p99"]}
    assert "t-interval over boots of iops, and beside it of p50, p99;" in plan.describe(made)
    made = make(tree, "headline.metric=p99", "headline.beside=iops", preset="core")
    assert "t-interval over boots of p99, and beside it of iops;" in plan.describe(made)
    with pytest.raises(ConfigError, match="headline.beside: 'p42' is none of"):
        make(tree, "headline.beside=p42")


def test_huge_pages_are_counted(tree):
    tree.write("/proc/meminfo", "MemAvailable: 80000000 kB\nHugepagesize: 2048 kB\n")
    tree.write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0")
    made = make(tree, "matrix.cells=read-1m-d4-j2,read-4k-d1-j1")
    assert made["config"]["load"]["huge_pages"] is True
    assert "reserves 8 huge pages of 2m" in made["changes"]


def test_save_and_load(tree, tmp_path):
    made = make(tree)
    plan.save(made, tmp_path / "p.json")
    assert plan.load(tmp_path / "p.json") == made
    (tmp_path / "q.json").write_text('{"format": 99}')
    with pytest.raises(ConfigError, match="not a plan of this version"):
        plan.load(tmp_path / "q.json")
    (tmp_path / "q.json").write_text("boots = 1")
    with pytest.raises(ConfigError, match="q.json is not a plan"):
        plan.load(tmp_path / "q.json")


def test_jobs_take_cores_before_threads(tree):
    for cpu in range(6):
        pair = f"{cpu % 3},{cpu % 3 + 3}"
        tree.write(f"{fakes.CPU}/cpu{cpu}/topology/thread_siblings_list", pair)
    assert cpus(tree.machine()) == [0, 1, 2, 3, 4, 5]
    for cpu in range(6):
        tree.write(f"{fakes.CPU}/cpu{cpu}/topology/thread_siblings_list", f"{cpu & ~1}-{cpu | 1}")
    assert cpus(tree.machine()) == [0, 2, 4, 1, 3, 5]


def test_time_for_people():
    assert [plan.duration(t) for t in (5, 89, 600, 5400, 9000)] == [
        "5 s", "89 s", "10 min", "1 h 30 min", "2 h 30 min"
    ]  # fmt: skip
