# SPDX-License-Identifier: GPL-2.0
"""Changes of the machine, each of which is written to a journal before it is made.

A change is made by a method of ``Machine``.  The method appends an entry to the journal, which is
on disk before the change is made, so that the change can be undone after a crash as well.
``Machine.restore()`` undoes all entries, the last one first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any


class MachineError(Exception):
    """The machine cannot be set up or restored as the plan says."""


#: Where the journal is, unless the caller says otherwise.
STATE_DIR = Path("/var/lib/blkcompare")


def value_in_force(text: str) -> str:
    """Returns the value that an attribute has: of "[none] bfq", "none"."""
    text = text.strip()
    if "[" in text and "]" in text:
        return text[text.index("[") + 1 : text.index("]")]
    return text


def write_durably(path: Path, text: str) -> None:
    """Writes a file so that it is there whole, or not at all, after a power failure."""
    new = path.with_name(path.name + ".new")
    with open(new, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Writes the names in a directory to disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Journal:
    """The list of changes to undo: a file with an entry of JSON in each line."""

    def __init__(self, state_dir: Path):
        self.directory = state_dir
        self.path = state_dir / "journal"

    def append(self, entry: Mapping[str, Any]) -> None:
        """Adds an entry, which is on disk on return."""
        new = not self.path.exists()
        with open(self.path, "a") as file:
            file.write(json.dumps(dict(entry)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_directory(self.directory)

    def entries(self) -> list[dict[str, Any]]:
        """Returns the entries, oldest first.

        A crash can truncate the last one.  Its change was not made then.
        """
        if not self.path.exists():
            return []
        result = []
        lines = self.path.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            try:
                result.append(json.loads(line))
            except ValueError as error:
                if number < len(lines):
                    raise MachineError(f"{self.path}: line {number} is damaged") from error
        return result

    def replace(self, entries: list[dict[str, Any]]) -> None:
        """Keeps only these entries; without any, the file is removed."""
        if entries:
            write_durably(self.path, "".join(json.dumps(entry) + "\n" for entry in entries))
        elif self.path.exists():
            self.path.unlink()
            sync_directory(self.directory)


def _path() -> str:
    """Returns where programs are: those of the administrator, too, for users who make a plan."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def _which(name: str) -> str | None:
    return shutil.which(name, path=_path())


def _run(argv: list[str]) -> str:
    """Runs a command, and returns what it writes to standard output."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PATH": _path()},
        )
    except FileNotFoundError as error:
        raise MachineError(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"{' '.join(argv)} did not end within 120 seconds") from error
    if done.returncode:
        why = done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}"
        raise MachineError(f"{' '.join(argv)} failed: {why}")
    return done.stdout


class Machine:
    """The machine: reads its files below ``root``, changes it, and restores it."""

    def __init__(
        self,
        state_dir: Path | str = STATE_DIR,
        root: Path | str = "/",
        command: Callable[[list[str]], str] = _run,
        say: Callable[[str], None] = lambda text: None,
        which: Callable[[str], str | None] = _which,
    ):
        self.root = Path(root)
        self.state_dir = Path(state_dir)
        self.command = command
        self.say = say
        self._which = which
        self.journal = Journal(self.state_dir)
        self._lock: int | None = None

    # Reading.

    def path(self, path: str) -> Path:
        """Returns an absolute path of the machine, below the root."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | None:
        """Returns the text of a file without white space at its ends, or None if there is none."""
        try:
            return self.path(path).read_text(errors="replace").strip()
        except OSError:
            return None

    def glob(self, pattern: str) -> list[str]:
        """Returns the paths of the machine that match a pattern, sorted."""
        return sorted(
            "/" + str(found.relative_to(self.root)) for found in self.root.glob(pattern.lstrip("/"))
        )

    def boot_id(self) -> str:
        return self.read("/proc/sys/kernel/random/boot_id") or "unknown"

    # Holding the machine.

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps a second run from changing the machine at the same time."""
        try:
            self.state_dir.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.state_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise MachineError(f"{self.state_dir} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise MachineError(
                f"another run of blkcompare holds {self.state_dir}/lock; wait until it ends"
            ) from error
        self._lock = fd
        try:
            yield
        finally:
            self._lock = None
            os.close(fd)

    def _record(self, entry: dict[str, Any]) -> None:
        if self._lock is None:
            raise AssertionError("the machine is changed without holding it")
        self.journal.append(entry | {"boot": self.boot_id()})

    def has_program(self, name: str) -> bool:
        return self._which(name) is not None

    # Changing.

    def set(self, path: str, value: str | int, required: bool = False) -> bool:
        """Writes an attribute unless it has the value; returns False if it could not be set.

        An attribute that does not exist, or that cannot be read because what it controls is not
        there, needs no setting.  Both are errors if the setting is required.
        """
        value = str(value)
        before = self.read(path)
        if before is None:
            if required:
                raise MachineError(f"{path} does not exist")
            return True
        before = value_in_force(before)
        if before == value:
            return True
        self._record({"kind": "write", "path": path, "old": before, "new": value})
        try:
            self.path(path).write_text(value)
        except OSError as error:
            if required:
                raise MachineError(f"{path} cannot be set to {value}: {error.strerror}") from error
            return False
        return value_in_force(self.read(path) or "") == value

    def load_module(self, name: str, parameters: Mapping[str, Any]) -> bool:
        """Loads a module unless it is there; returns whether it was loaded now."""
        if self.module_loaded(name):
            return False
        self._record({"kind": "module", "name": name})
        self.command(["modprobe", name, *(f"{key}={value}" for key, value in parameters.items())])
        return True

    def module_loaded(self, name: str) -> bool:
        return self.path(f"/sys/module/{name.replace('-', '_')}").is_dir()

    def make_directory(self, path: str) -> None:
        """Makes a directory of configfs, which must not exist."""
        if self.path(path).exists():
            raise MachineError(
                f"{path} exists already; remove it if it is left over from an earlier test"
            )
        self._record({"kind": "configfs", "path": path})
        try:
            self.path(path).mkdir()
        except OSError as error:
            raise MachineError(f"{path} cannot be made: {error.strerror}") from error

    def make_file(self, path: Path, size: int) -> None:
        """Makes a sparse file, which must not exist."""
        if path.exists():
            raise MachineError(f"{path} exists already; remove it")
        self._record({"kind": "file", "path": str(path)})
        with open(path, "xb") as file:
            file.truncate(size)

    def attach_loop(self, path: Path) -> str:
        """Makes a loop device of a file, and returns the path of the device."""
        self._record({"kind": "loop", "path": str(path)})
        argv = ["losetup", "--find", "--show"]
        try:
            return self.command([*argv, "--direct-io=on", str(path)]).strip()
        except MachineError:
            # The file system may not support direct I/O.
            return self.command([*argv, str(path)]).strip()

    def start(self, start: list[str], stop: list[str]) -> str:
        """Runs a command, and notes the one that undoes what it does."""
        self._record({"kind": "command", "argv": stop})
        return self.command(start)

    def bind(self, address: str, driver: str) -> None:
        """Binds a PCI device to a driver."""
        device = f"/sys/bus/pci/devices/{address}"
        if not self.path(device).exists():
            raise MachineError(f"there is no PCI device {address}")
        bound = self.bound_driver(address)
        if bound == driver:
            return
        override = self.read(f"{device}/driver_override") or ""
        self._record(
            {
                "kind": "bind",
                "address": address,
                "driver": bound,
                "override": "" if override == "(null)" else override,
            }
        )
        self._bind(address, driver, driver)

    def bound_driver(self, address: str) -> str | None:
        link = self.path(f"/sys/bus/pci/devices/{address}/driver")
        return os.path.basename(os.readlink(link)) if link.is_symlink() else None

    def _bind(self, address: str, driver: str | None, override: str) -> None:
        device = self.path(f"/sys/bus/pci/devices/{address}")
        if (device / "driver").exists():
            (device / "driver/unbind").write_text(address)
        (device / "driver_override").write_text(override or "\n")
        if driver:
            self.path("/sys/bus/pci/drivers_probe").write_text(address)
            if self.bound_driver(address) not in (driver, None):
                raise MachineError(f"PCI device {address} was taken by another driver")

    # Restoring.

    def mark(self) -> int:
        """Returns a place in the journal, for ``restore(to=...)``."""
        return len(self.journal.entries())

    def restore(self, to: int = 0) -> list[str]:
        """Undoes the changes since a mark, the last one first; returns what could not be undone.

        What could not be undone stays in the journal, for the next attempt.
        """
        if self._lock is None:
            raise AssertionError("the machine is restored without holding it")
        entries = self.journal.entries()
        kept, failures = [], []
        while len(entries) > to:
            entry = entries.pop()
            try:
                self._undo(entry)
            except (MachineError, OSError) as error:
                failures.append(str(error))
                kept.insert(0, entry)
            self.journal.replace(entries + kept)
        return failures

    def _undo(self, entry: Mapping[str, Any]) -> None:
        # Only files survive a reboot.
        if entry["boot"] != self.boot_id() and entry["kind"] != "file":
            return
        getattr(self, f"_undo_{entry['kind']}")(entry)

    def _undo_write(self, entry: Mapping[str, Any]) -> None:
        path = entry["path"]
        now = self.read(path)
        if now is None:
            return  # The device is gone, and its attributes with it.
        now = value_in_force(now)
        if now == entry["old"]:
            return
        if now != entry["new"]:
            self.say(f"{path} is {now} now, not {entry['new']} as it was set; restored anyway")
        try:
            self.path(path).write_text(entry["old"])
        except OSError as error:
            raise MachineError(
                f"{path} cannot be set back to {entry['old']}: {error.strerror}"
            ) from error

    def _undo_module(self, entry: Mapping[str, Any]) -> None:
        if self.module_loaded(entry["name"]):
            self._patiently(lambda: self.command(["modprobe", "-r", entry["name"]]))

    def _undo_configfs(self, entry: Mapping[str, Any]) -> None:
        path = self.path(entry["path"])
        if not path.exists():
            return
        with contextlib.suppress(OSError):
            (path / "power").write_text("0")
        if self.root != Path("/"):
            shutil.rmtree(path)  # Only in configfs a directory with attributes can be removed.
            return
        self._patiently(path.rmdir)

    def _undo_file(self, entry: Mapping[str, Any]) -> None:
        Path(entry["path"]).unlink(missing_ok=True)

    def _undo_loop(self, entry: Mapping[str, Any]) -> None:
        for line in self.command(["losetup", "-j", entry["path"]]).splitlines():
            device = line.partition(":")[0]
            self._patiently(lambda device=device: self.command(["losetup", "-d", device]))

    def _undo_command(self, entry: Mapping[str, Any]) -> None:
        self.command(list(entry["argv"]))

    def _undo_bind(self, entry: Mapping[str, Any]) -> None:
        self._bind(entry["address"], entry["driver"], entry["override"])

    @staticmethod
    def _patiently(action: Callable[[], Any], attempts: int = 20) -> None:
        """Tries again while the device is still busy: the load may be about to end."""
        for attempt in range(attempts):
            try:
                action()
                return
            except (MachineError, OSError):
                if attempt + 1 == attempts:
                    raise
                time.sleep(0.25)
