# SPDX-License-Identifier: GPL-2.0
"""Tests of what is said to be missing before anything is changed."""

import fakes
import pytest

from blkcompare import needs
from blkcompare.config import load_config
from blkcompare.machine import Machine, MachineError
from blkcompare.plan import make_plan


@pytest.fixture
def tree(tmp_path):
    tree = fakes.make(tmp_path)
    tree.write("/proc/meminfo", "MemTotal: 90000000 kB\nMemAvailable: 80000000 kB\n")
    tree.write("/proc/sys/kernel/osrelease", "6.1.0-fake")
    tree.descriptions = {"null_blk": "a null block device"}
    command = tree.command

    def answer(argv):
        if argv[:3] == ["modinfo", "-F", "description"]:
            return tree.descriptions[argv[3]]
        return command(argv)

    tree.command = answer
    return tree


def missing(tree, a, b, *overrides):
    sides = [f"drivers.A.driver={a}", f"drivers.B.driver={b}"]
    cell = ["matrix.cells=randread-4k-d1-j1", f"load.fio={tree.top / 'fio'}"]
    config = load_config(None, [], [*sides, *cell, *overrides])
    return needs.missing(tree.machine(), make_plan(config, tree.machine()))


def test_nothing_is_missing(tree):
    assert missing(tree, "null_blk", "rnull") == []
    assert missing(tree, "loop", "brd") == []


def test_programs_are_named_with_their_packages(tree):
    tree.absent = {"fio", "modprobe", "losetup"}
    assert missing(tree, "loop", "brd", "load.fio=fio-that-is-nowhere") == [
        "fio-that-is-nowhere --version fails",
        "the program modprobe is not installed (on Debian it is in the package kmod)",
        "the program losetup is not installed (on Debian it is in the package mount)",
    ]
    tree.absent = {"fio-that-is-nowhere"}
    (text,) = missing(tree, "loop", "brd", "load.fio=fio-that-is-nowhere")
    assert text == "the program fio-that-is-nowhere is not installed"


@pytest.mark.parametrize(
    ("driver", "absent", "text"),
    [
        ("rnull", "rnull_mod", "has no module rnull_mod (it is not part of Linux; the package"),
        ("ublk", "ublk_drv", "has no module ublk_drv (the module needs CONFIG_BLK_DEV_UBLK"),
        ("ublk", "ublk", "the program ublk is not installed (the module needs"),
        ("brd", "brd", "the kernel 6.1.0-fake has no module brd"),
        ("rnull-dropin", "", "module null_blk is not that of the plan, but: a null block device"),
    ],
)
def test_drivers_that_are_not_there(tree, driver, absent, text):
    tree.absent = {absent}
    (found,) = missing(tree, "loop", driver)
    assert text in found


@pytest.mark.parametrize("driver", ["nvme", "rnvme"])
def test_drivers_of_pci_devices(tree, driver):
    tree.absent = {driver}
    found = missing(tree, "loop", driver, 'drivers.B.address="0000:09:00.0"',
                    'disk.overwrite="0000:09:00.0"')  # fmt: skip
    assert found[0].startswith(f"the kernel 6.1.0-fake has no module {driver}")
    assert found[1] == "there is no PCI device 0000:09:00.0; lspci -D shows those that are"
    tree.write("/sys/bus/pci/devices/0000:09:00.0/vendor", "0x1")
    tree.absent = set()
    assert missing(tree, "loop", driver, 'drivers.B.address="0000:09:00.0"',
                   'disk.overwrite="0000:09:00.0"') == []  # fmt: skip


def test_a_module_that_is_loaded_needs_nothing(tree):
    tree.absent = {"modprobe", "brd"}
    tree.write("/sys/module/brd/refcnt", "0")
    tree.write("/sys/module/loop/refcnt", "0")
    assert missing(tree, "loop", "brd") == []


def test_io_uring_that_is_turned_off(tree):
    tree.write("/proc/sys/kernel/io_uring_disabled", "2")
    (text,) = missing(tree, "loop", "brd")
    assert text.startswith("io_uring is turned off")
    assert missing(tree, "loop", "brd", "load.engine=libaio") == []


def test_all_is_said_at_once(tree):
    tree.absent = {"brd", "losetup"}
    plan = make_plan(
        load_config(None, [], ["drivers.A.driver=loop", "drivers.B.driver=brd"]), tree.machine()
    )
    plan["config"]["load"]["fio"] = str(tree.top / "fio")
    with pytest.raises(MachineError, match="cannot be carried out here: .*losetup.*; .*brd"):
        needs.require(tree.machine(), plan)


def test_programs_of_the_administrator_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Machine(tmp_path).has_program("ldconfig")
    assert not Machine(tmp_path).has_program("no-such-program")
