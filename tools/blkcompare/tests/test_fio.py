# SPDX-License-Identifier: GPL-2.0
"""Tests of fio: its arguments, its output, and its end."""

from pathlib import Path
import gzip
import json
import os
import signal
import time
import subprocess
import sys

import pytest

from blkcompare import fio
from blkcompare.config import load_config

AXES = {"jobs": 2, "rw": "randread", "bs": 4096, "depth": 8}


def arguments(axes=AXES, *overrides, huge=False):
    load = load_config(None, [], list(overrides)).section("load")
    return fio.load_arguments(
        load, axes, "/dev/x", seed=7, cpus=[3, 1, 0], huge=huge, output=Path("/o.json")
    )


def test_arguments():
    words = arguments()
    for word in (
        "--filename=/dev/x", "--rw=randread", "--bs=4096", "--iodepth=8", "--numjobs=2",
        "--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--direct=1", "--readonly",
        "--randseed=7", "--runtime=2500ms", "--ramp_time=500ms", "--cpus_allowed=3,1",
        "--cpus_allowed_policy=split", "--iomem=mmap", "--output-format=json+",
    ):  # fmt: skip
        assert word in words
    assert "--hipri" not in words


def test_arguments_by_setting():
    assert "--fixedbufs" not in arguments(AXES, "load.engine=libaio")
    assert "--hipri" in arguments(AXES, "load.polled=true")
    assert "--iodepth_batch_submit=8" in arguments(AXES, "load.batch=32")
    assert "--iomem=mmaphuge" in arguments(huge=True)
    assert "--readonly" not in arguments(AXES | {"rw": "randrw"})
    assert "--rwmixread=50" in arguments(AXES | {"rw": "randrw"})
    assert arguments(AXES, 'load.arguments=["--x"]')[-1] == "--x"


def test_huge_pages_that_fio_takes():
    # As counted in /proc/PID/maps of fio 3.33.
    for bs, depth, pages in (
        (32768, 64, 3), (32768, 65, 4), (262144, 32, 6), (1 << 20, 3, 4), (1 << 20, 4, 4),
    ):  # fmt: skip
        axes = {"jobs": 1, "bs": bs, "depth": depth}
        assert fio.huge_pages_needed(axes, 2 << 20) == pages
    assert fio.huge_pages_needed({"jobs": 3, "bs": 1 << 20, "depth": 4}, 2 << 20) == 12


def direction(ios, bins):
    total = sum(int(value) * count for value, count in bins.items())
    return {
        "iops": ios / 2, "bw_bytes": ios * 2048, "total_ios": ios,
        "clat_ns": {"min": min(map(int, bins)), "max": max(map(int, bins)), "N": ios,
                    "mean": total / ios, "bins": bins, "percentile": {"50.000000": 7}},
    }  # fmt: skip


NONE = {"iops": 0, "bw_bytes": 0, "total_ios": 0, "clat_ns": {"min": 0, "max": 0, "N": 0}}


def output(read=NONE, write=NONE, error=0):
    rest = {"trim": NONE, "usr_cpu": 1, "sys_cpu": 2, "ctx": 3, "majf": 4, "minf": 5}
    return json.dumps({"jobs": [{"error": error, "read": read, "write": write, **rest}]})


def test_output_of_one_direction():
    text = "note: both\n" + output(direction(100, {"5": 100})) + "\nbye"
    iops, bandwidth, latency, extra = fio.parse(text)
    assert (iops, bandwidth) == (50, 204800)
    assert {latency["1"], latency["50"], latency["99.99"]} == {5}
    assert (latency["mean"], latency["min"], latency["max"], latency["ios"]) == (5, 5, 5, 100)
    assert extra["ctx"] == 3


def test_latencies_of_two_directions_are_those_of_all_requests():
    iops, _, latency, _ = fio.parse(
        output(direction(90, {"10": 90}), direction(10, {"1000": 9, "5000": 1}))
    )
    assert iops == 50
    assert (latency["50"], latency["90"]) == pytest.approx((10.56, 11))
    # The bin of 1000 begins at 1000, that of 5000 at 4992.
    assert (latency["99"], latency["99.9"]) == pytest.approx((1008, 5000))
    assert latency["mean"] == pytest.approx((900 + 9000 + 5000) / 100)
    assert (latency["min"], latency["max"]) == (10, 5000)


def test_percentiles_are_interpolated_within_the_bins_of_fio():
    assert [fio._bin(value) for value in (5, 127, 129, 1004, 87552)] == [
        (5, 1), (127, 1), (128, 2), (1000, 8), (87040, 1024)
    ]  # fmt: skip
    # Latencies from 1000 to 2000, of which fio knows the bins.
    exact = [1000 + k / 50 for k in range(50000)]
    bins = {}
    for value in exact:
        width = 8 if value < 1024 else 16
        middle = int(value // width * width + width / 2)
        bins[str(middle)] = bins.get(str(middle), 0) + 1
    latency = fio.parse(output(direction(len(exact), bins)))[2]
    for p in (1, 50, 90, 99):
        assert latency[f"{p:g}"] == pytest.approx(1000 + 10 * p, abs=0.1)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "not understood"),
        ("fio: no such device", "not understood"),
        ("{}", "not understood"),
        (output(direction(1, {"5": 1}))[:-9], "not understood"),
        (output(direction(1, {"5": 1}), error=5), "reports error 5"),
        (output(), "did no I/O"),
    ],
)
def test_output_without_a_result(text, message):
    with pytest.raises(fio.FioError, match=message):
        fio.parse(text)


def script(tmp_path, text):
    file = tmp_path / "fio"
    file.write_text(f"#!{sys.executable}\n{text}")
    file.chmod(0o755)
    return [str(file)]


def test_output_and_errors_are_kept(tmp_path):
    out = tmp_path / "raw/x.json"
    text = output(direction(100, {"5": 100}))
    argv = script(tmp_path, f"import sys\nopen({str(out)!r}, 'w').write({text!r})\n"
                            "print('a warning', file=sys.stderr)")  # fmt: skip
    result = fio.run(argv, out, 10)
    assert (result.iops, result.stderr) == (50, "a warning")
    assert gzip.decompress((tmp_path / "raw/x.json.gz").read_bytes()).decode() == text
    assert (tmp_path / "raw/x.err").read_text() == "a warning\n"
    assert not out.exists()


def test_failure_says_why(tmp_path):
    argv = script(tmp_path, "import sys; sys.exit('fio: it burns')")
    with pytest.raises(fio.FioError, match="status 1: fio: it burns"):
        fio.run(argv, tmp_path / "x.json", 10)
    with pytest.raises(fio.FioError, match="cannot be run: No such file"):
        fio.run(["/nowhere/fio"], tmp_path / "x.json", 10)


def test_time_limit_ends_the_jobs_too(tmp_path):
    file = tmp_path / "fio"
    file.write_text(
        f"#!/bin/sh\ntrap '' TERM\ncd {tmp_path}\n"
        "sh -c 'echo $$ >>pids; sleep 60' &\necho $$ >>pids\nsleep 60\n"
    )
    file.chmod(0o755)
    argv = [str(file)]
    process_end = fio._end
    fio._end = lambda process: process_end(process, 0.2)
    try:
        with pytest.raises(fio.FioError, match="did not end within 2 seconds"):
            fio.run(argv, tmp_path / "x.json", 2)
    finally:
        fio._end = process_end
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    end = time.monotonic() + 5
    while any(_runs(int(pid)) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.02)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_fio_ends_when_this_program_is_killed(tmp_path):
    argv = script(tmp_path, f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w')"
                            ".write(str(os.getpid()) + '\\n')\ntime.sleep(60)")  # fmt: skip
    parent = (
        "from pathlib import Path\nfrom blkcompare import fio\n"
        f"fio.run({argv!r}, Path({str(tmp_path / 'x.json')!r}), 60)"
    )
    source = str(Path(fio.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": source}
    with subprocess.Popen([sys.executable, "-c", parent], env=environment) as child:
        pid = _read_when_there(tmp_path / "pid")
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    end = time.monotonic() + 5
    while _runs(pid):
        assert time.monotonic() < end
        time.sleep(0.02)


def _read_when_there(path, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.02)
    raise AssertionError(f"{path} is not there")


def test_signal_while_fio_is_started_leaves_nothing_behind(tmp_path, monkeypatch):
    class Stop(BaseException):
        pass

    def stop(number, frame):
        raise Stop

    def popen(*arguments, **options):
        seen.append(start(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)
        return seen[0]

    seen, start = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", popen)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(Stop):
            fio.run(["sleep", "60"], tmp_path / "x.json", 60)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen[0].poll() is not None
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
