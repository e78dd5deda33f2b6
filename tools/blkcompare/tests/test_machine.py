# SPDX-License-Identifier: GPL-2.0
"""Tests of changes of the machine, and of their restoration."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import fakes
import pytest

from blkcompare.machine import Journal, Machine, MachineError

GOVERNOR = f"{fakes.CPU}/cpufreq/policy0/scaling_governor"


@pytest.fixture
def tree(tmp_path):
    return fakes.make(tmp_path)


def test_set_and_restore(tree):
    machine = tree.machine()
    with machine.hold():
        assert machine.set(GOVERNOR, "performance")
        assert machine.set(f"{fakes.CPU}/cpufreq/boost", 0)
        assert tree.read(GOVERNOR) == "performance"
        assert machine.restore() == []
    assert tree.read(GOVERNOR) == "powersave"
    assert tree.read(f"{fakes.CPU}/cpufreq/boost") == "1"
    assert not machine.journal.path.exists()


def test_set_what_is_there_already_is_no_change(tree):
    machine = tree.machine()
    tree.write("/sys/block/x/queue/scheduler", "[none] bfq")
    with machine.hold():
        assert machine.set("/sys/block/x/queue/scheduler", "none")
        assert machine.journal.entries() == []


def test_journal_is_written_before_the_change(tree, monkeypatch):
    machine = tree.machine()
    seen = []

    def write_text(path, text):
        seen.extend(machine.journal.entries())
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "write_text", write_text)
    with machine.hold():
        assert not machine.set(GOVERNOR, "performance")
    assert seen[0]["old"] == "powersave"


def test_required_setting(tree):
    machine = tree.machine()
    with machine.hold():
        assert machine.set("/sys/not/there", 1)
        with pytest.raises(MachineError, match="/sys/not/there does not exist"):
            machine.set("/sys/not/there", 1, required=True)


def test_restore_in_reverse_order(tree):
    machine = tree.machine()
    with machine.hold():
        machine.load_module("m", {"p": 1})
        machine.start(["fakedisk", "add", "d"], ["fakedisk", "del", "d"])
        machine.restore()
    assert tree.commands[-2:] == [["fakedisk", "del", "d"], ["modprobe", "-r", "m"]]


def test_module_that_was_loaded_stays(tree):
    machine = tree.machine()
    (tree.root / "sys/module/m").mkdir(parents=True)
    with machine.hold():
        assert not machine.load_module("m", {})
        machine.restore()
    assert machine.module_loaded("m")


def test_restore_to_a_mark(tree):
    machine = tree.machine()
    with machine.hold():
        machine.set(GOVERNOR, "performance")
        mark = machine.mark()
        machine.start(["fakedisk", "add", "d"], ["fakedisk", "del", "d"])
        machine.restore(mark)
        assert not (tree.root / "dev/d").exists()
        assert tree.read(GOVERNOR) == "performance"
        assert machine.mark() == mark


def test_what_cannot_be_undone_stays_in_the_journal(tree, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    machine = tree.machine()
    with machine.hold():
        machine.load_module("m", {})
        machine.set(GOVERNOR, "performance")
        tree.modules_fail = True
        assert machine.restore() == ["m is in use"]
        assert tree.read(GOVERNOR) == "powersave"
        assert [entry["kind"] for entry in machine.journal.entries()] == ["module"]
        tree.modules_fail = False
        assert machine.restore() == []
    assert not machine.module_loaded("m")


def test_existing_directory_of_configfs_is_not_taken(tree):
    tree.write("/sys/kernel/config/nullb/x/power", "1")
    machine = tree.machine()
    with machine.hold():
        with pytest.raises(MachineError, match="exists already"):
            machine.make_directory("/sys/kernel/config/nullb/x")
        machine.restore()
    assert tree.read("/sys/kernel/config/nullb/x/power") == "1"


def test_after_a_reboot_only_files_are_left_to_undo(tree, tmp_path):
    machine = tree.machine()
    with machine.hold():
        machine.set(GOVERNOR, "performance")
        machine.make_file(tmp_path / "image", 4096)
        tree.write("/proc/sys/kernel/random/boot_id", "boot-2")
        tree.write(GOVERNOR, "schedutil")
        assert machine.restore() == []
    assert tree.read(GOVERNOR) == "schedutil"
    assert not (tmp_path / "image").exists()


def test_journal_with_a_truncated_line(tmp_path):
    journal = Journal(tmp_path)
    journal.append({"kind": "x"})
    with open(journal.path, "a") as file:
        file.write('{"kind": "wri')
    assert journal.entries() == [{"kind": "x"}]
    journal.path.write_text('{"ki\n{"kind": "x"}\n')
    with pytest.raises(MachineError, match="line 1 is damaged"):
        journal.entries()


def test_two_runs_at_a_time(tree):
    with tree.machine().hold(), pytest.raises(MachineError, match="another run"):
        with tree.machine().hold():
            pass


def test_bind_and_restore(tree):
    device = tree.root / "sys/bus/pci/devices/0000:01:00.0"
    driver = tree.root / "sys/bus/pci/drivers/nvme"
    driver.mkdir(parents=True)
    device.mkdir(parents=True)
    tree.write("/sys/bus/pci/drivers/nvme/unbind", "")
    tree.write("/sys/bus/pci/devices/0000:01:00.0/driver_override", "(null)")
    tree.write("/sys/bus/pci/drivers_probe", "")
    (device / "driver").symlink_to(driver)
    machine = tree.machine()
    with machine.hold():
        with pytest.raises(MachineError, match="taken by another driver"):
            machine.bind("0000:01:00.0", "rnvme")  # Nothing in the tree binds it.
        assert tree.read("/sys/bus/pci/devices/0000:01:00.0/driver_override") == "rnvme"
        assert machine.journal.entries()[0]["driver"] == "nvme"
        assert machine.restore() == []
    assert tree.read("/sys/bus/pci/devices/0000:01:00.0/driver_override") == "\n"
    assert tree.read("/sys/bus/pci/drivers/nvme/unbind") == "0000:01:00.0"


CHILD = """
import sys, time
sys.path.insert(0, {here!r})
from pathlib import Path
import fakes
tree = fakes.Tree.__new__(fakes.Tree)
tree.top = Path({top!r}); tree.root = tree.top / "root"; tree.commands = []
machine = tree.machine()
with machine.hold():
    machine.set({governor!r}, "performance")
    machine.load_module("m", {{}})
    machine.start(["fakedisk", "add", "d"], ["fakedisk", "del", "d"])
    print("ready", flush=True)
    time.sleep(60)
"""


def test_restoration_after_sigkill(tree):
    text = CHILD.format(here=str(Path(__file__).parent), top=str(tree.top), governor=GOVERNOR)
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert tree.read(GOVERNOR) == "performance"
    assert (tree.root / "dev/d").exists()
    machine = tree.machine()
    with machine.hold():  # The lock ended with the process.
        assert machine.restore() == []
    assert tree.read(GOVERNOR) == "powersave"
    assert not (tree.root / "dev/d").exists()
    assert not machine.module_loaded("m")


def test_missing_program(tmp_path):
    machine = Machine(tmp_path)
    with machine.hold(), pytest.raises(MachineError, match="no-such-program is not installed"):
        machine.start(["no-such-program"], ["true"])
    with machine.hold(), pytest.raises(MachineError, match="false failed: status 1"):
        machine.start(["false"], ["true"])
