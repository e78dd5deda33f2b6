# SPDX-License-Identifier: GPL-2.0
"""Tests of the disks: which devices are refused, and how disks are made."""

import errno

import fakes
import pytest

from blkcompare import disks
from blkcompare.config import ConfigError, load_config, packaged
from blkcompare.disks import RefusedError, check_device, describe, plan_driver, planned_devices
from blkcompare.machine import MachineError


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr(disks, "_is_block_device", lambda path: path.is_file())
    tree = fakes.make(tmp_path)
    tree.add_disk("sdx", "8:16")
    tree.add_disk("sdx1", "8:17")
    tree.write("/sys/class/block/sdx/sdx1/partition", "1")
    return tree


def check(tree, device="/dev/sdx", named=("/dev/sdx",), recorded=None):
    check_device(tree.machine(), device, list(named), recorded)


def test_free_device_is_accepted(tree):
    check(tree)
    check(tree, recorded={"sectors": "2048"})


def test_device_that_the_plan_does_not_name(tree):
    with pytest.raises(RefusedError, match="/dev/sdx is not named in the plan"):
        check(tree, named=["/dev/sdy"])


def test_mounted_device(tree):
    tree.write("/proc/self/mountinfo", "20 1 8:16 / /mnt rw - ext4 /dev/sdx rw")
    with pytest.raises(RefusedError, match="/dev/sdx is mounted on /mnt"):
        check(tree)


def test_mounted_partition(tree):
    tree.write("/proc/self/mountinfo", "20 1 8:17 / /mnt rw - ext4 /dev/sdx1 rw")
    with pytest.raises(RefusedError, match="/dev/sdx1 is mounted on /mnt"):
        check(tree)


def test_device_of_a_file_system_with_a_number_of_its_own(tree):
    # btrfs mounts have a number that is no device's.
    tree.write("/proc/self/mountinfo", "20 1 0:40 / /mnt rw - btrfs /dev/sdx1 rw")
    with pytest.raises(RefusedError, match="/dev/sdx1 is mounted"):
        check(tree)


def test_held_partition(tree):
    tree.write("/sys/class/block/sdx1/holders/dm-0/x", "")
    with pytest.raises(RefusedError, match="/dev/sdx1 is held by dm-0"):
        check(tree)


def test_swap(tree):
    tree.write("/proc/swaps", "Filename Type Size\n/dev/sdx1 partition 1")
    with pytest.raises(RefusedError, match="/dev/sdx1 is swap space"):
        check(tree)


def test_device_behind_a_loop_device(tree):
    tree.write("/sys/class/block/loop3/loop/backing_file", "/dev/sdx")
    with pytest.raises(RefusedError, match="/dev/sdx is held by loop3"):
        check(tree)


def test_device_that_the_kernel_uses(tree, monkeypatch):
    def busy(path):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(disks, "_open_exclusively", busy)
    with pytest.raises(RefusedError, match="something uses it"):
        check(tree)


def test_another_device_of_the_same_name(tree):
    with pytest.raises(RefusedError, match="not the device that the plan was made with"):
        check(tree, recorded={"sectors": "2048", "serial": "A1"})


def test_file_and_nothing(tree, monkeypatch):
    with pytest.raises(RefusedError, match="No such file"):
        monkeypatch.undo()
        check(tree, "/dev/none", ["/dev/none"])
    with pytest.raises(RefusedError, match="is not a block device"):
        check(tree)


def test_link_to_a_device(tree):
    (tree.root / "dev/disk").mkdir()
    (tree.root / "dev/disk/by-id").symlink_to("../sdx")
    tree.write("/proc/self/mountinfo", "20 1 8:16 / /mnt rw - ext4 /dev/sdx rw")
    with pytest.raises(RefusedError, match="is mounted on /mnt"):
        check(tree, "/dev/disk/by-id", ["/dev/disk/by-id"])


def test_all_descriptions_are_valid():
    for name in packaged("drivers"):
        assert describe(name)["summary"]


@pytest.mark.parametrize(
    "text, message",
    [
        ('kind = "magic"', "has the kind magic"),
        ('kind = "pci"', "lacks pci_driver"),
        ('kind = "device"\ncolour = "red"', "colour, which is not known"),
    ],
)
def test_bad_descriptions(tmp_path, text, message):
    (tmp_path / "d.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        describe(str(tmp_path / "d.toml"))
    with pytest.raises(ConfigError, match="no description of a driver nul_blk; there are brd"):
        describe("nul_blk")


def sides(*overrides):
    config = load_config(None, [], list(overrides))
    return {side: plan_driver(config, side, 4)[0] for side in "AB"}


def test_settings_become_attributes():
    both = sides(
        "drivers.A.driver=null_blk", "drivers.B.driver=rnull", "disk.completion=timer",
        "disk.poll_queues=2", "drivers.B.attributes.mbps=7", "disk.size=1G",
    )  # fmt: skip
    a, b = both["A"], both["B"]
    assert a["attributes"]["size"] == "1024"
    assert a["attributes"]["irqmode"] == "2"
    assert a["attributes"]["completion_nsec"] == "10000"
    assert a["attributes"]["submit_queues"] == "4"
    assert a["parameters"] == {"nr_devices": "0", "poll_queues": "2"}
    # The disks of both drivers differ in nothing else.
    del a["attributes"]["zoned"]
    assert b["attributes"] == a["attributes"] | {"mbps": "7"}
    assert b["description"]["configfs"] == "rnull"


def test_delay_is_set_for_the_timer_only():
    both = sides("drivers.A.driver=null_blk", "drivers.B.driver=rnull")
    assert "completion_nsec" not in both["A"]["attributes"]


def test_what_a_driver_cannot_do_is_said():
    config = load_config(None, [], ["drivers.A.driver=brd"])
    _, notes = plan_driver(config, "A", 4)
    assert notes == ["brd has no setting for completion, queues, depth, block_size of disk"]


def test_device_has_to_be_named():
    with pytest.raises(ConfigError, match="drivers.A.device does not say which"):
        sides("drivers.A.driver=device")
    with pytest.raises(ConfigError, match="drivers.A.address does not say which"):
        sides("drivers.A.driver=nvme")


def test_disks_have_places_of_their_own():
    both = sides("drivers.A.driver=brd", "drivers.B.driver=brd")
    found = planned_devices(both, "ABC")
    assert [found[letter]["device"] for letter in "ABC"] == ["/dev/ram0", "/dev/ram1", "/dev/ram2"]
    both = sides("drivers.A.driver=null_blk", "drivers.B.driver=null_blk")
    found = planned_devices(both, "ABC")
    assert len({each["device"] for each in found.values()}) == 3


def configfs_plan(tree, **attributes):
    tree.write("/sys/kernel/config/nullb/features", "")
    both = sides("drivers.A.driver=null_blk", "drivers.B.driver=null_blk")
    for side in both.values():
        side["attributes"] = attributes
        del side["description"]["not_description"]
    return {
        "control": False,
        "drivers": both,
        "devices": planned_devices(both, "AB"),
        "config": {"disk": {"size": 1 << 20}},
    }


def test_disk_of_configfs(tree):
    plan = configfs_plan(tree, size="1")
    tree.add_disk("blkcompare_a", "252:0")
    tree.add_disk("blkcompare_b", "252:1")
    machine = tree.machine()
    with machine.hold():
        made = disks.Disks(machine, plan)
        made.make()
        assert made.device == {"A": "/dev/blkcompare_a", "B": "/dev/blkcompare_b"}
        assert tree.commands == [["modprobe", "null_blk", "nr_devices=0", "poll_queues=0"]]
        assert tree.read("/sys/kernel/config/nullb/blkcompare_a/power") == "1"
        machine.restore()
    assert not (tree.root / "sys/kernel/config/nullb/blkcompare_a").exists()


def test_setting_that_is_not_in_force(tree, monkeypatch):
    plan = configfs_plan(tree, hw_queue_depth="99999")
    tree.add_disk("blkcompare_a")
    machine = tree.machine()
    read = machine.read
    machine.read = lambda path: "10240" if path.endswith("hw_queue_depth") else read(path)
    with machine.hold(), pytest.raises(MachineError, match="hw_queue_depth is 10240, though 99999"):
        disks.Disks(machine, plan).make()


def test_wrong_module(tree):
    plan = configfs_plan(tree)
    plan["drivers"]["A"]["description"]["not_description"] = "Null block driver in Rust"
    machine = tree.machine()
    command = machine.command
    machine.command = lambda argv: (
        "Null block driver in Rust\n" if argv[0] == "modinfo" else command(argv)
    )
    with machine.hold(), pytest.raises(MachineError, match="not that of the plan, but: Null block"):
        disks.Disks(machine, plan).make()


def test_loaded_module_with_disks_is_refused(tree):
    both = sides("drivers.A.driver=brd", "drivers.B.driver=brd")
    (tree.root / "sys/module/brd").mkdir(parents=True)
    machine = tree.machine()
    plan = {
        "control": False,
        "drivers": both,
        "devices": planned_devices(both, "AB"),
        "config": {"disk": {"size": 1 << 20}},
    }
    with machine.hold(), pytest.raises(RefusedError, match="brd is loaded already"):
        disks.Disks(machine, plan).make()


def test_disks_of_a_pci_device(tree):
    device = tree.root / "sys/devices/pci0/0000:01:00.0"
    (device / "nvme/nvme0/nvme0n1/nvme0n1p1").mkdir(parents=True)
    (device / "nvme/nvme0/nvme0n1/nvme0n1p1/partition").write_text("1")
    (tree.root / "sys/bus/pci/devices").mkdir(parents=True)
    (tree.root / "sys/bus/pci/devices/0000:01:00.0").symlink_to(device)
    for name in ("nvme0n1", "nvme0n1/nvme0n1p1"):
        link = tree.root / "sys/class/block" / name.rpartition("/")[2]
        link.symlink_to(device / "nvme/nvme0" / name)
    assert disks.pci_disks(tree.machine(), "0000:01:00.0") == ["/dev/nvme0n1"]
