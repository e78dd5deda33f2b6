# SPDX-License-Identifier: GPL-2.0
"""Tests of covariates."""

import gzip
import os
import struct

import fakes
import pytest

from blkcompare import covariates, tune
from blkcompare.config import load_config
from blkcompare.machine import MachineError


@pytest.fixture
def tree(tmp_path):
    return fakes.make(tmp_path)


def recorder(tree):
    config = load_config(None, [], [])
    plan = {"config": {"covariates": config.section("covariates")}}
    return covariates.Recorder(tree.machine(), plan)


def test_what_the_machine_lacks_is_absent(tree):
    made = recorder(tree)
    made.refresh(["m"])
    made.before()
    found = made.after(["fio", "--x"], {"ctx": 3})
    for name in (
        "temperature", "clock_mhz", "idle", "buddyinfo_before", "module.m.address", "dmesg_lines",
        "huge_pages_free", "uptime",
    ):  # fmt: skip
        assert found[name] is None, name
    assert (found["argv"], found["ctx"]) == ("fio --x", 3)


def test_what_the_machine_has_is_recorded(tree):
    tree.write("/sys/class/thermal/thermal_zone0/temp", "45500")
    tree.write("/sys/class/hwmon/hwmon0/temp1_input", "51000")
    tree.write(f"{fakes.CPU}/cpu0/cpufreq/scaling_cur_freq", "2000000")
    tree.write(f"{fakes.CPU}/cpu1/cpufreq/scaling_cur_freq", "3000000")
    tree.write(f"{fakes.CPU}/cpu0/cpuidle/state1/name", "C1")
    tree.write(f"{fakes.CPU}/cpu0/cpuidle/state1/time", "0")
    tree.write("/proc/buddyinfo", "Node 0, zone DMA 1 2 3\nNode 0, zone Normal 10 20 30")
    tree.write("/sys/module/m/sections/.text", "0xffffffffa0000000")
    made = recorder(tree)
    made.refresh(["m"])
    made.before()
    tree.write(f"{fakes.CPU}/cpu0/cpuidle/state1/time", "1000")
    found = made.after([], {})
    assert found["temperature"] == 51
    assert found["clock_mhz"] == 2500
    assert found["idle.C1"] > 0
    assert found["buddyinfo_after"] == "11,22,33"
    assert found["module.m.address"] == "0xffffffffa0000000"


def test_hidden_address_is_absent(tree):
    tree.write("/sys/module/m/sections/.text", "0x0000000000000000")
    assert covariates.module_address(tree.machine(), "m") is None


def test_build_id(tree):
    other = struct.pack("=III", 4, 4, 1) + b"GNU\0" + b"abcd"
    note = struct.pack("=III", 4, 3, 3) + b"GNU\0" + b"\1\2\3\0"
    path = tree.root / "sys/module/m/notes"
    path.mkdir(parents=True)
    (path / ".note.gnu.build-id").write_bytes(other + note)
    assert covariates.build_id(tree.machine(), "m") == "010203"
    assert covariates.build_id(tree.machine(), "other") is None


def test_boot_facts(tree):
    (tree.root / "proc/config.gz").write_bytes(gzip.compress(b"CONFIG_X=y\n"))
    found = covariates.boot_facts(tree.machine(), ["m"])
    assert found["microcode"] == "0x42"
    assert len(found["config_hash"]) == len(found["cmdline_hash"]) == 16
    assert found["module.m.build_id"] is None
    before = found["cmdline_hash"]
    tree.write("/proc/cmdline", "loud")
    assert covariates.boot_facts(tree.machine(), [])["cmdline_hash"] != before


def test_machine_facts_do_not_name_the_machine_id(tree):
    tree.write("/etc/machine-id", "0123456789abcdef0123456789abcdef")
    found = covariates.machine_facts(tree.machine())
    assert found["name"] and "0123456789abcdef0123" not in str(found)


def test_ranges():
    assert covariates.without([(0, 10)], [(2, 4), (8, 20)]) == [(0, 2), (4, 8)]
    assert covariates.without([(0, 10)], [(10, 20)]) == [(0, 10)]
    assert covariates.without([(5, 10)], [(0, 20)]) == []
    assert covariates.without([(0, 4), (6, 9)], [(2, 7)]) == [(0, 2), (7, 9)]


def test_frames():
    found = covariates.describe_frames(list(range(64, 128)))
    assert (found["buffer_pages"], found["buffer_pieces"]) == (64, 1)
    assert found["buffer_colour_imbalance"] == 0
    found = covariates.describe_frames([32 * n for n in range(64)])
    assert found["buffer_pieces"] == 64
    assert found["buffer_colours"].startswith("64,0,0")
    assert found["buffer_colour_imbalance"] == 62


def test_children():
    pid = os.fork()
    if not pid:
        os.execvp("sleep", ["sleep", "30"])
    try:
        assert pid in covariates.children(os.getpid())
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def settings(tree, *overrides):
    config = load_config(None, [], list(overrides))
    return tune.cpu_settings(tree.machine(), {"machine": config.section("machine")})


def test_cpu_settings(tree):
    found = {setting.path.rpartition("/")[2]: setting.value for setting in settings(tree)}
    assert found == {"scaling_governor": "performance", "boost": "0"}
    assert settings(tree, "machine.governor=keep", "machine.boost=keep") == []
    tree.write(f"{fakes.CPU}/intel_pstate/no_turbo", "0")
    assert settings(tree)[-1].value == "1"


def test_fixed_clock(tree):
    policy = f"{fakes.CPU}/cpufreq/policy0"
    tree.write(f"{policy}/base_frequency", "2000000")
    tree.write(f"{policy}/scaling_max_freq", "1500000")
    found = [
        setting.path.rpartition("/")[2] for setting in settings(tree, "machine.clock_khz=base")
    ]
    # The maximum is below the clock, so it is raised first.
    assert found[-2:] == ["scaling_max_freq", "scaling_min_freq"]
    tree.write(f"{policy}/scaling_max_freq", "3000000")
    found = [
        setting.path.rpartition("/")[2] for setting in settings(tree, "machine.clock_khz=base")
    ]
    assert found[-2:] == ["scaling_min_freq", "scaling_max_freq"]


def test_huge_pages(tree):
    pages = "/sys/kernel/mm/hugepages/hugepages-2048kB"
    cell = {"axes": {"jobs": 2, "bs": 1 << 20, "depth": 4}}
    machine = tree.machine()
    with machine.hold():
        with pytest.raises(MachineError, match="no huge pages"):
            tune.reserve_huge_pages(machine, [cell])
        tree.write("/proc/meminfo", "Hugepagesize: 2048 kB\n")
        tree.write(f"{pages}/nr_hugepages", "5")
        tree.write(f"{pages}/free_hugepages", "2")
        assert tune.reserve_huge_pages(machine, [cell]) == 8
        assert tree.read(f"{pages}/nr_hugepages") == "11"  # Three are in use.
        machine.restore()
    assert tree.read(f"{pages}/nr_hugepages") == "5"


def test_fragmented_memory(tree, monkeypatch):
    pages = "/sys/kernel/mm/hugepages/hugepages-2048kB"
    tree.write("/proc/meminfo", "Hugepagesize: 2048 kB\n")
    tree.write(f"{pages}/nr_hugepages", "0")
    machine = tree.machine()
    monkeypatch.setattr(
        machine, "read", lambda path: "Hugepagesize: 2048 kB" if path == "/proc/meminfo" else "3"
    )
    with machine.hold(), pytest.raises(MachineError, match="of 8 huge pages there are only 3"):
        tune.reserve_huge_pages(machine, [{"axes": {"jobs": 2, "bs": 1 << 20, "depth": 4}}])
