# SPDX-License-Identifier: GPL-2.0
"""Tests of the command line."""

import json
import shutil
import subprocess
import sys

import fakes
import pytest

import blkcompare
from blkcompare import cli, plan, runner, unit
from blkcompare.config import ConfigError, load_config
from blkcompare.db import Database


DESIGN = fakes.design("cycles", {"load": {"runtime": 0.05}}, {"load": {"runtime": 0.1}})


@pytest.fixture
def tree(tmp_path):
    return fakes.make(tmp_path)


def run(tree, *words):
    return cli.main(["--state", str(tree.top / "state"), *map(str, words)])


def options(tree, **others):
    return [word for each in fakes.settings(tree.top, **others) for word in ("--set", each)]


def test_list(tree, capsys):
    assert run(tree, "plan", "--list") == 0
    text = capsys.readouterr().out
    for name in ("smoke", "core", "matrix", "null_blk", "rnull", "rnvme", "ublk", "device"):
        assert f"\n  {name} " in text


def test_configuration(tree, capsys):
    assert run(tree, "plan", "--preset", "smoke", "--a", "brd", "--config") == 0
    text = capsys.readouterr().out
    assert 'driver = "brd"' in text and "(preset smoke)" in text


def test_frozen_plan(tree, capsys):
    frozen = tree.top / "p.json"
    assert run(tree, "plan", *options(tree), "-o", frozen) == 0
    assert json.loads(frozen.read_text())["seed"] == 5
    assert "What a run does to this machine" in capsys.readouterr().out
    assert run(tree, "plan", *options(tree), "-o", frozen) == 1
    assert "a plan is not changed" in capsys.readouterr().err


def test_errors_are_sentences(tree, capsys):
    assert run(tree, "plan", "--preset", "core") == 1
    assert capsys.readouterr().err == (
        "blkcompare: error: the plan does not say which driver A is; set drivers.A.driver or --a\n"
    )
    assert run(tree, "report", tree.top / "none") == 1
    assert "there are no results" in capsys.readouterr().err


def test_only_root_runs(tree, capsys, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert run(tree, "run", *options(tree), "-d", tree.top / "r") == 1
    assert "has to be run by root" in capsys.readouterr().err
    assert run(tree, "restore") == 1


@pytest.fixture
def runs(monkeypatch):
    """Records the plans that would be run."""
    seen = []

    class Fake:
        def __init__(self, plan, directory, *arguments, **options):
            seen.append(plan)
            self.directory = directory

        def run(self):
            Database(self.directory / cli.DATABASE, create=True).close()
            return "reboot"

    monkeypatch.setattr(runner, "Runner", Fake)
    monkeypatch.setattr(runner, "require_root", lambda: None)
    return seen


def test_plan_is_frozen_at_the_first_start(tree, runs, tmp_path):
    file = tmp_path / "x.toml"
    lines = [each for each in fakes.settings(tree.top) if not each.startswith("seed")]
    file.write_text("\n".join(lines))
    assert run(tree, "run", file, "--no-report") == cli.REBOOT
    assert (tmp_path / "x.results/plan.json").exists()
    # The seed is drawn once.
    assert run(tree, "run", file, "--no-report") == cli.REBOOT
    assert run(tree, "run", tmp_path / "x.results", "--no-report") == cli.REBOOT
    assert runs[0] == runs[1] == runs[2]


def test_plan_is_not_changed_after_the_start(tree, runs, tmp_path, capsys):
    results = tmp_path / "r"
    assert run(tree, "run", *options(tree), "-d", results, "--no-report") == cli.REBOOT
    assert run(tree, "run", *options(tree, margin=0.5), "-d", results) == 1
    assert "has the results of another plan" in capsys.readouterr().err
    assert run(tree, "run", results, "--set", "margin=0.5") == 1
    assert "is not changed; make another one" in capsys.readouterr().err
    assert len(runs) == 1


def test_a_plan_that_was_not_started_may_change(tree, runs, tmp_path):
    """What a newcomer does who lacks a driver: the run is refused, the file names another one."""
    results = tmp_path / "r"
    wanted = plan.make_plan(load_config(None, [], fakes.settings(tree.top)), tree.machine())
    results.mkdir()
    plan.save(wanted, results / "plan.json")
    changed = options(tree, margin=0.5)
    assert run(tree, "run", *changed, "-d", results, "--no-report") == cli.REBOOT
    assert [made["margin"] for made in runs] == [0.5]


def test_what_is_missing_is_said_by_a_plan(tree, capsys):
    assert run(tree, "plan", *options(tree, load__fio="no-such-fio")) == 0
    text = capsys.readouterr().out
    assert "cannot be carried out on this machine as it is" in text
    assert "the program no-such-fio is not installed" in text


def test_errors_of_files_are_sentences(tree, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with Database(tmp_path / cli.DATABASE, create=True) as database:
        database.start_run(
            {"drivers": {"A": {"name": "a"}, "B": {"name": "b"}}},
            name="n", machine={"id": "i", "name": "m"}, versions={}, cells={"c": {}},
        )  # fmt: skip
    assert run(tree, "report", tmp_path, "-o", tmp_path / "file") == 1
    assert capsys.readouterr().err == f"blkcompare: error: {tmp_path}/file: File exists\n"


def test_restore_of_nothing(tree, monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert run(tree, "restore") == 0
    assert capsys.readouterr().out == "there is nothing to restore\n"


def test_experiment_starts_from_the_plan_of_the_run(tree, tmp_path, monkeypatch, capsys):
    from blkcompare.plan import make_plan

    base = make_plan(load_config(None, [], fakes.settings(tree.top, margin=0.02)), tree.machine())
    with Database(tmp_path / "results.sqlite", create=True) as database:
        database.start_run(
            base, name="n", machine={"id": "i", "name": "m"}, versions={}, cells={"c": {}}
        )
    arguments = cli._parser().parse_args(
        ["--state", str(tree.top / "state"), "explain", "x", "c", "--experiment",
         str(tmp_path / "e")]
    )  # fmt: skip
    assert cli._experiment(tmp_path / "results.sqlite", DESIGN, arguments) == 0
    made = json.loads((tmp_path / "e/plan.json").read_text())
    assert (made["boots"], made["margin"]) == (4, 0.02)
    assert [c["load"]["runtime"] for c in made["arms"]["configs"]] == [0.05, 0.1]
    assert "Each cell has two arms, in an order by lot over the cycles" in capsys.readouterr().out
    # The same experiment goes on, another one is refused.
    assert cli._experiment(tmp_path / "results.sqlite", DESIGN, arguments) == 0
    with pytest.raises(ConfigError, match="has the results of another plan"):
        cli._experiment(tmp_path / "results.sqlite", DESIGN | {"over": "boots"}, arguments)


def test_unit(tree, tmp_path):
    machine = tree.machine()
    commands = []
    machine.command = lambda argv: commands.append(argv) or ""
    (tree.root / "etc/systemd/system").mkdir(parents=True)
    unit.install(machine, tmp_path / "a b%", settle=7)
    text = tree.read(unit.PATH)
    assert f'run --reboot "{tmp_path}/a b%%"' in text
    assert f'--state "{tree.top}/state"' in text
    assert "ExecStartPre=/bin/sleep 7" in text
    assert commands[-1] == ["systemctl", "enable", "blkcompare.service"]
    # Waiting is a part of the start, which has 90 seconds if nothing else is said.
    assert "TimeoutStartSec=infinity" in text
    assert unit.remove(machine)
    assert not (tree.root / unit.PATH.lstrip("/")).exists()
    assert not unit.remove(machine)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("path", [None, "/opt/a b:/opt/$c"])
def test_systemd_accepts_the_unit(tmp_path, monkeypatch, path):
    if path:
        monkeypatch.setenv("PYTHONPATH", path)
    else:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    file = tmp_path / unit.UNIT
    file.write_text(unit.text(tmp_path / 'a "b" $c 5%', tmp_path / "state", settle=600))
    done = subprocess.run(
        ["systemd-analyze", "verify", file], capture_output=True, text=True, timeout=60
    )
    about_it = [line for line in done.stderr.splitlines() if unit.UNIT in line]
    assert (done.returncode, about_it) == (0, [])
    # That of a mistake is not 0.
    file.write_text(file.read_text().replace("ExecStart=", "ExecStar="))
    assert subprocess.run(["systemd-analyze", "verify", file], capture_output=True).returncode


def test_unit_names_the_path_of_a_package_that_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/opt/a b")
    assert 'Environment="PYTHONPATH=/opt/a b"\n' in unit.text(tmp_path, tmp_path, 1)
    monkeypatch.delenv("PYTHONPATH")
    assert "Environment" not in unit.text(tmp_path, tmp_path, 1)


def test_what_the_standard_library_cannot_do_is_said(tree, runs, tmp_path, capsys, monkeypatch):
    """Measuring takes nothing else, all that computes does."""
    for name in ("numpy", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("analysis", "report", "explain", "stats", "plots", "modes"):
        monkeypatch.delitem(sys.modules, f"blkcompare.{name}", raising=False)
        monkeypatch.delattr(blkcompare, name, raising=False)
    results = tmp_path / "r"
    assert run(tree, "run", *options(tree), "-d", results) == cli.REBOOT
    assert "no report is written, because a library is missing" in capsys.readouterr().err
    for words in (["report", results], ["power", results], ["explain", results, "c"]):
        assert run(tree, *words) == 1
        assert "error: a library is missing here" in capsys.readouterr().err
