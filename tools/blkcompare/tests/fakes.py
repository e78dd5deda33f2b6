# SPDX-License-Identifier: GPL-2.0
"""A machine below a directory, with disks that are files, and a program in place of fio."""

import json
from pathlib import Path

from blkcompare import disks
from blkcompare.machine import Machine, MachineError

CPU = "/sys/devices/system/cpu"

#: Answers as fio does, and behaves as the file "behaviour" says.
FIO = """\
#!/bin/sh
top='{top}'
for word; do
	case $word in
	--version) echo fio-0.0; exit ;;
	--name=*) name=${{word#*=}} ;;
	--filename=*) file=${{word#*=}} ;;
	--rw=*) rw=${{word#*=}} ;;
	--output=*) output=${{word#*=}} ;;
	esac
done
read -r behaviour <"$top/behaviour"
echo $$ "$@" >>"$top/calls"
case $name,$behaviour in
fill,*) ;;
*,sleep) exec sleep 60 ;;
*,fail) echo "fio: the device is on fire" >&2; exit 1 ;;
esac
case $file in *b*) iops=1010 ;; *) iops=1000 ;; esac
clat='"clat_ns": {{"min": 1, "max": 9, "mean": 5, "N": 500, "bins": {{"5": 500}}}}'
ios="{{\\"iops\\": $iops, \\"bw_bytes\\": 4096000, \\"total_ios\\": 500, $clat}}"
none='{{"iops": 0, "bw_bytes": 0, "total_ios": 0}}'
case $rw in *read*) read=$ios write=$none ;; *) read=$none write=$ios ;; esac
cpu='"usr_cpu": 1, "sys_cpu": 2, "ctx": 3, "majf": 0, "minf": 4'
cat >"$output" <<EOF
fio: a warning
{{"jobs": [{{"error": 0, "read": $read, "write": $write, "trim": $none, $cpu}}]}}
EOF
"""

#: A driver whose disks a command makes.
DRIVER = """\
summary = "a driver for tests"
kind = "command"
start = ["fakedisk", "add", "{letter}{{id}}"]
stop = ["fakedisk", "del", "{letter}{{id}}"]
device = "/dev/{letter}{{id}}"
module = "fake_{letter}"
"""


class Tree:
    """The files of a machine with two CPUs."""

    def __init__(self, top: Path):
        self.top = top
        self.root = top / "root"
        self.write("/proc/sys/kernel/random/boot_id", "boot-1")
        self.write("/proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0")
        self.write("/proc/loadavg", "0.00 0.00 0.00 1/100 1")
        self.write("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n")
        self.write("/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw")
        self.write("/proc/swaps", "Filename Type Size Used Priority")
        self.write("/proc/cmdline", "quiet")
        self.write("/proc/cpuinfo", "processor: 0\nmicrocode : 0x42\nflags : fpu\n")
        for cpu in (0, 1):
            self.write(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "powersave")
        self.write(f"{CPU}/cpufreq/boost", "1")
        self.commands = []
        self.modules_fail = False
        self.absent = set()  # modules and programs

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path):
        return (self.root / path.lstrip("/")).read_text()

    def add_disk(self, name, number="7:0", sectors=2048):
        self.write(f"/dev/{name}", "")
        self.write(f"/sys/class/block/{name}/size", str(sectors))
        self.write(f"/sys/class/block/{name}/dev", number)
        self.write(f"/sys/block/{name}/queue/scheduler", "[mq-deadline] none")
        self.write(f"/sys/block/{name}/queue/iostats", "1")

    def command(self, argv):
        """Takes the place of the programs that change a machine."""
        if argv[0] != "modinfo":
            self.commands.append(argv)  # what changes something
        match argv:
            case ["fakedisk", "add", name]:
                self.add_disk(name)
            case ["fakedisk", "del", name]:
                (self.root / "dev" / name).unlink(missing_ok=True)
            case ["modinfo", "-F", "filename", name]:
                if name in self.absent:
                    raise MachineError(f"module {name} not found")
                return f"/lib/modules/{name}.ko"
            case ["modprobe", "-r", name]:
                if self.modules_fail:
                    raise MachineError(f"{name} is in use")
                (self.root / "sys/module" / name).rmdir()
            case ["modprobe", name, *_]:
                (self.root / "sys/module" / name).mkdir(parents=True)
            case _:
                raise MachineError(f"{argv[0]} is not known here")
        return ""

    def machine(self):
        return Machine(self.top / "state", self.root, self.command, which=self.which)

    def which(self, name):
        """Takes the place of shutil.which."""
        return None if name in self.absent else f"/usr/bin/{name}"


def make(top: Path) -> Tree:
    """Makes a machine, a fio, and the descriptions of two drivers."""
    tree = Tree(top)
    (top / "behaviour").write_text("work\n")
    fio = top / "fio"
    fio.write_text(FIO.format(top=top))
    fio.chmod(0o755)
    for letter in "ab":
        (top / f"{letter}.toml").write_text(DRIVER.format(letter=letter))
    return tree


def disks_are_files() -> None:
    """Has files pass for block devices."""
    disks._is_block_device = lambda path: path.is_file()
    # Devices of this machine do not count.
    disks._sysfs_name = lambda machine, device: device.removeprefix("/dev/")


def settings(top: Path, **others) -> list[str]:
    """Returns the overrides for a small plan of two cells."""
    values = {
        "drivers.A.driver": str(top / "a.toml"),
        "drivers.B.driver": str(top / "b.toml"),
        "matrix.cells": ["randread-4k-d1-j1", "randwrite-4k-d8-j1"],
        "boots": 1,
        "cycles": 2,
        "seed": 5,
        "disk.size": "1M",
        "load.fio": str(top / "fio"),
        "load.runtime": 0.05,
        "load.ramp": 0,
        "load.pin": False,
        "gate.window": 0.05,
        "gate.wait": 0,
        "covariates.pagemap": False,
    } | {key.replace("__", "."): value for key, value in others.items()}
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def design(over: str, *overrides) -> dict:
    """Returns an experiment with these arms."""
    return {
        "hypothesis": "test",
        "text": "Is it so?",
        "predicts": "it is",
        "quiet": 0,
        "over": over,
        "set": {"boots": 4},
        "arms": [
            {"name": name, "text": f"the arm {name}", "set": override}
            for name, override in zip(("one", "two"), overrides, strict=True)
        ],
    }
