# SPDX-License-Identifier: GPL-2.0
"""fio: its arguments for a measurement, and what its output says."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
PR_SET_PDEATHSIG = 1
#: Blocks of the writes that fill a disk.
FILL_BLOCK = 1 << 20
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_LIBC = ctypes.CDLL(None, use_errno=True)


class FioError(Exception):
    """A measurement has no result."""


@dataclass
class Result:
    """The result of one start of fio."""

    iops: float
    bandwidth: float
    latency: dict[str, float]
    started: float
    ended: float
    argv: list[str]
    stderr: str
    extra: dict[str, float] = field(default_factory=dict)


def buffer_bytes(axes: Mapping[str, Any], huge_page: int | None) -> int:
    """Returns how much memory fio takes for the buffers of all jobs of a cell.

    The buffer of a job is ``depth * bs`` in whole pages, and one page more to align it.  Of huge
    pages fio maps a second one more, but for a buffer of less than a page.
    """
    page = huge_page or 4096
    each = -(-axes["bs"] * axes["depth"] // page) * page + (2 if huge_page else 1) * page
    return each * axes["jobs"]


def huge_pages_needed(axes: Mapping[str, Any], huge_page: int) -> int:
    """Returns how many huge pages the buffers of a cell take at most."""
    return buffer_bytes(axes, huge_page) // huge_page


def load_arguments(
    load: Mapping[str, Any],
    axes: Mapping[str, Any],
    device: str,
    *,
    seed: int,
    cpus: list[int],
    huge: bool,
    output: Path,
) -> list[str]:
    """Returns the arguments of fio that measure a cell on a device."""
    words = [
        load["fio"],
        "--name=blkcompare",
        f"--filename={device}",
        f"--rw={axes['rw']}",
        f"--bs={axes['bs']}",
        f"--iodepth={axes['depth']}",
        f"--numjobs={axes['jobs']}",
        f"--ioengine={load['engine']}",
        f"--direct={int(load['direct'])}",
        "--group_reporting",
        "--time_based",
        f"--runtime={round(load['runtime'] * 1000)}ms",
        f"--ramp_time={round(load['ramp'] * 1000)}ms",
        # The same places for all drivers of a cycle.
        "--norandommap",
        f"--randseed={seed}",
        "--output-format=json+",
        "--percentile_list=" + ":".join(map(str, PERCENTILES)),
        f"--output={output}",
    ]
    if load["size"]:
        words.append(f"--size={load['size']}")
    if axes["rw"] in ("read", "randread"):
        words.append("--readonly")
    if axes["rw"] in ("rw", "randrw"):
        words.append(f"--rwmixread={load['read_percent']}")
    if load["engine"] == "io_uring":
        words += ["--fixedbufs"] * load["fixed_buffers"]
        words += ["--registerfiles"] * load["registered_files"]
        words += ["--hipri"] * load["polled"]
    if load["batch"] > 1:
        batch = min(load["batch"], axes["depth"])
        words += [
            f"--iodepth_batch_submit={batch}",
            f"--iodepth_batch_complete_min={batch}",
            f"--iodepth_batch_complete_max={batch}",
        ]
    # Anonymous memory in both cases, so that its pages can be found in the same way.
    words.append("--iomem=mmaphuge" if huge else "--iomem=mmap")
    if load["pin"]:
        words += [
            f"--cpus_allowed={','.join(map(str, cpus[: axes['jobs']]))}",
            "--cpus_allowed_policy=split",
        ]
    return words + list(load["arguments"])


def fill_arguments(load: Mapping[str, Any], device: str, size: int, output: Path) -> list[str]:
    """Returns the arguments of fio that fill a device, and check what was written."""
    block = min(FILL_BLOCK, size)
    return [
        load["fio"],
        "--name=fill",
        f"--filename={device}",
        "--rw=write",
        f"--bs={block}",
        f"--size={size // block * block}",
        "--ioengine=psync",
        f"--direct={int(load['direct'])}",
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--output-format=json+",
        f"--output={output}",
    ]


def _in_child(mask: set[signal.Signals]) -> None:
    """Has the kernel end fio when this program is killed, so that the disk is not in use then."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def run(
    argv: list[str],
    output: Path,
    time_limit: float,
    meanwhile: Callable[[int], None] | None = None,
) -> Result:
    """Runs fio, and returns its result; the output stays, compressed, with its errors beside it.

    ``meanwhile`` is called with the process id as soon as fio runs.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    errors = output.with_suffix(".err")
    started = time.time()
    # A signal that arrives while fio is being started would leave it behind.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    process = None
    try:
        with open(errors, "wb") as stderr:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=lambda: _in_child(mask),
            )
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if meanwhile:
            meanwhile(process.pid)
        status = process.wait(time_limit)
    except OSError as error:
        raise FioError(f"{argv[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise FioError(f"fio did not end within {time_limit:.0f} seconds") from error
    finally:
        if process:
            _end(process)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    ended = time.time()
    said = errors.read_text(errors="replace").strip()
    if not said:
        errors.unlink()
    text = output.read_text(errors="replace") if output.exists() else ""
    _compress(output)
    if status:
        raise FioError(f"fio ended with status {status}: {_why(said, text)}")
    iops, bandwidth, latency, extra = parse(text)
    return Result(iops, bandwidth, latency, started, ended, argv, said, extra)


def _why(said: str, text: str) -> str:
    """Returns the reason of a failure: the last line of the errors, else the number in the output.

    Errors of a job are among the text in front of the output, too.
    """
    lines = said.splitlines() or text.partition("{")[0].splitlines()
    lines = [line for line in lines if line.strip()]
    if lines:
        return lines[-1].strip()
    try:
        return os.strerror(json.loads(text)["jobs"][0]["error"])
    except (ValueError, KeyError, IndexError, TypeError):
        return "without a message"


def _end(process: subprocess.Popen[bytes], patience: float = 5) -> None:
    """Ends fio and its jobs, if they run."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def _compress(path: Path) -> None:
    if path.exists():
        with open(path, "rb") as file, gzip.open(path.with_name(path.name + ".gz"), "wb") as packed:
            packed.write(file.read())
        path.unlink()


def parse(text: str) -> tuple[float, float, dict[str, float], dict[str, float]]:
    """Returns IOPS, bytes per second, latencies in ns, and the CPU usage, of fio's json+."""
    start = text.find("{")
    try:
        # Lines before and after the object are warnings.
        data, _ = json.JSONDecoder().raw_decode(text[start:] if start >= 0 else "")
        (job,) = data["jobs"]
        if job["error"]:
            raise FioError(f"fio reports error {job['error']}")
        directions = [job[key] for key in ("read", "write", "trim") if job[key]["total_ios"]]
        if not directions:
            raise FioError("fio did no I/O")
        iops = sum(direction["iops"] for direction in directions)
        bandwidth = sum(direction["bw_bytes"] for direction in directions)
        latency = _latency(directions)
        extra = {key: job[key] for key in ("usr_cpu", "sys_cpu", "ctx", "majf", "minf")}
    except (ValueError, KeyError, TypeError) as error:
        raise FioError(f"the output of fio is not understood ({error!r})") from error
    if not iops > 0:
        raise FioError("fio did no I/O")
    return iops, bandwidth, latency, extra


def _latency(directions: list[Mapping[str, Any]]) -> dict[str, float]:
    """Returns the latencies of all I/O together, and how many I/O these were.

    The percentiles that fio prints are the middles of its bins, which are up to 1.6 % wide.  So
    they are interpolated within the bins.
    """
    bins: dict[int, int] = {}
    total, ios = 0.0, 0
    for direction in directions:
        times = direction["clat_ns"]
        total += times["mean"] * times["N"]
        ios += times["N"]
        for value, count in times.get("bins", {}).items():
            bins[int(value)] = bins.get(int(value), 0) + count
    least = min(direction["clat_ns"]["min"] for direction in directions)
    most = max(direction["clat_ns"]["max"] for direction in directions)
    found: dict[str, float] = {}
    below, wanted = 0, list(PERCENTILES)
    for value in sorted(bins):
        low, width = _bin(value)
        while wanted and below + bins[value] >= ios * wanted[0] / 100:
            inside = low + width * (ios * wanted[0] / 100 - below) / bins[value]
            found[_name(wanted.pop(0))] = round(min(most, max(least, inside)), 2)
        below += bins[value]
    return found | {"mean": total / ios, "min": least, "max": most, "ios": ios}


def _bin(value: int) -> tuple[int, int]:
    """Returns the lower limit and the width of a bin of fio, given its middle.

    A power of two is divided into 64 bins; what is below 128 ns has a bin for each nanosecond.
    """
    width = 1 << max(0, value.bit_length() - 7)
    return value // width * width, width


def _name(percentile: float) -> str:
    return f"{percentile:g}"


def version(program: str) -> str | None:
    """Returns the version of fio, or None if it cannot be run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
