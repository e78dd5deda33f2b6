# SPDX-License-Identifier: GPL-2.0
"""The command line."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import __version__, needs, plan, runner, unit
from .config import Config, ConfigError, load_config, packaged
from .db import Database, DatabaseError
from .machine import STATE_DIR, Machine, MachineError
from .progress import Progress

DATABASE = "results.sqlite"
INTERRUPTED = 130
#: The status of a run whose next boot is due.
REBOOT = 3

EPILOG = """\
A plan file names two drivers and, as a rule, a preset:

    preset = "core"
    [drivers.A]
    driver = "null_blk"
    [drivers.B]
    driver = "rnull"

"blkcompare run FILE.toml" makes the plan, carries it out, and writes the report.
"""


def _config(arguments: argparse.Namespace) -> Config:
    """Returns the configuration of the command line."""
    overrides = list(arguments.set)
    for side in "ab":
        driver = getattr(arguments, side)
        if driver:
            overrides.insert(0, f'drivers.{side.upper()}.driver="{driver}"')
    return load_config(arguments.preset, arguments.files, overrides)


def _machine(arguments: argparse.Namespace) -> Machine:
    return Machine(arguments.state, say=Progress().say)


def plan_command(arguments: argparse.Namespace) -> int:
    if arguments.list:
        for kind, title in (("presets", "Presets"), ("drivers", "Drivers")):
            print(f"{title}:")
            for name, text in packaged(kind).items():
                about = tomllib.loads(text).get("summary") or text.splitlines()[1].lstrip("# ")
                print(f"  {name:14} {about}")
        return 0
    config = _config(arguments)
    if arguments.config:
        print(config.dump(), end="")
        return 0
    machine = _machine(arguments)
    made = plan.make_plan(config, machine)
    print(plan.describe(made))
    lacking = needs.missing(machine, made)
    if lacking:
        print("It cannot be carried out on this machine as it is:")
        print("\n".join(f"  - {sentence}" for sentence in lacking))
    if arguments.output:
        if arguments.output.exists():
            raise ConfigError(f"{arguments.output} exists already, and a plan is not changed")
        plan.save(made, arguments.output)
        print(
            f"The plan is in {arguments.output}; start it with: blkcompare run {arguments.output}"
        )
    return 0


def _directory(arguments: argparse.Namespace) -> Path:
    """Returns the directory of the results: that of --directory, or one beside the plan file."""
    if arguments.directory:
        return arguments.directory
    if len(arguments.files) == 1 and arguments.files[0].is_dir():
        return arguments.files[0]
    if arguments.files:
        return arguments.files[-1].with_suffix(".results")
    raise ConfigError("without a plan file, --directory has to say where the results go")


def _plan_of_run(
    arguments: argparse.Namespace, directory: Path, machine: Machine
) -> dict[str, Any]:
    """Returns the plan to carry out: the one that is frozen in the directory, if there is one."""
    frozen = directory / "plan.json"
    files = arguments.files
    given = arguments.preset or arguments.set or arguments.a or arguments.b
    if files == [directory]:
        if given:
            raise ConfigError(f"the plan in {directory} is not changed; make another one")
        return plan.load(frozen)
    if len(files) == 1 and files[0].suffix == ".json":
        if given:
            raise ConfigError(f"the plan {files[0]} is not changed; make another one")
        wanted = plan.load(files[0])
        if frozen.exists() and plan.load(frozen) != wanted:
            raise ConfigError(f"{directory} has the results of another plan; see --directory")
    else:
        config = _config(arguments)
        # A plan that was never started, for want of something, may still be changed.
        started = (directory / DATABASE).exists()
        if frozen.exists():
            wanted = plan.load(frozen)
            if wanted["config_hash"] == plan.config_hash(config):
                return wanted
            if started:
                raise ConfigError(
                    f"{directory} has the results of another plan; go on with: blkcompare run"
                    f" {directory}, or take another directory with --directory"
                )
            frozen.unlink()
        wanted = plan.make_plan(config, machine)
    if not frozen.exists():
        directory.mkdir(parents=True, exist_ok=True)
        plan.save(wanted, frozen)
    return wanted


def run_command(arguments: argparse.Namespace) -> int:
    runner.require_root()
    progress = Progress()
    machine = Machine(arguments.state, say=progress.say)
    directory = _directory(arguments)
    wanted = _plan_of_run(arguments, directory, machine)
    if arguments.install_unit:
        needs.require(machine, wanted)
        unit.install(machine, directory, arguments.settle)
        progress.say(
            f"{unit.PATH} is installed: it starts the run after each boot, and reboots"
            " until the run is complete"
        )
        progress.say(f"reboot to begin; to stop, run: systemctl disable --now {unit.UNIT}")
        return 0
    print(plan.describe(wanted), flush=True)
    try:
        state = runner.Runner(wanted, directory, machine, progress, again=arguments.again).run()
    except BaseException:
        # A boot that fails must not be followed by one boot after another.
        if arguments.reboot and unit.remove(machine):
            progress.say(f"{unit.UNIT} is removed")
        raise
    if state == "complete" and arguments.reboot:
        unit.remove(machine)
    if state == "reboot" and arguments.reboot:
        progress.say("this boot is measured; rebooting")
        machine.command(["systemctl", "reboot"])
        return 0
    if not arguments.no_report:
        try:
            _report([directory / DATABASE], directory / "report")
            if "arms" in wanted and state == "complete":
                _outcome(directory / DATABASE)
        except ImportError as error:
            progress.say(
                f"no report is written, because a library is missing here: {error}; run"
                f" blkcompare report {directory} on another machine"
            )
    if state == "reboot":
        progress.say(
            f"this boot is measured; reboot, then: blkcompare run {directory} (a unit does both:"
            " --install-unit)"
        )
        return REBOOT
    return 0


def _report(databases: list[Path], output: Path, **options: Any) -> None:
    from . import report

    written = report.write_report(databases, output, **options)
    print(written.summary)
    print(f"The report is {written.html}")


def _outcome(database: Path) -> None:
    from . import explain

    print(explain.outcome(database))


def _databases(paths: list[Path]) -> list[Path]:
    found = [path / DATABASE if path.is_dir() else path for path in paths]
    for path in found:
        if not path.exists():
            raise ConfigError(f"there are no results in {path}")
    return found


def report_command(arguments: argparse.Namespace) -> int:
    databases = _databases(arguments.results)
    output = arguments.output or databases[0].parent / "report"
    _report(databases, output, confidence=arguments.confidence)
    return 0


def explain_command(arguments: argparse.Namespace) -> int:
    from . import explain

    (database,) = _databases([arguments.results])
    if arguments.cell is None:
        print(explain.outcome(database, arguments.run))
        return 0
    print(explain.explain(database, arguments.cell, arguments.run))
    if not arguments.experiment:
        return 0
    design = explain.experiment(database, arguments.cell, arguments.run, arguments.hypothesis)
    if design is None:
        print("There is nothing for an experiment to decide.")
        return 0
    return _experiment(database, design, arguments)


def _experiment(database: Path, design: dict[str, Any], arguments: argparse.Namespace) -> int:
    """Makes the plan of an experiment from that of the run, and carries it out if asked to."""
    with Database(database, readonly=True) as opened:
        runs = [run for run, *_ in opened.find_runs() if arguments.run in (None, run)]
        base = opened.load_run(runs[-1]).plan
    config = Config()
    config.apply(base["config"], "the plan of the run")
    config.apply(design["set"], "the experiment")
    machine = _machine(arguments)
    directory = arguments.experiment
    if (directory / "plan.json").exists():
        wanted = plan.load(directory / "plan.json")
        if wanted["config_hash"] != plan.config_hash(config, design):
            raise ConfigError(f"{directory} has the results of another plan")
    else:
        wanted = plan.make_experiment(config, machine, design)
        directory.mkdir(parents=True, exist_ok=True)
        plan.save(wanted, directory / "plan.json")
    print(f"The experiment is planned in {directory}.")
    if not arguments.go:
        print(plan.describe(wanted))
        print(f"Carry it out with: blkcompare run {directory}")
        return 0
    arguments.files, arguments.directory = [directory], None
    for name, value in {
        "preset": None, "set": [], "a": None, "b": None, "install_unit": False, "again": False,
        "reboot": False, "no_report": False,
    }.items():  # fmt: skip
        setattr(arguments, name, value)
    return run_command(arguments)


def power_command(arguments: argparse.Namespace) -> int:
    from . import analysis

    (database,) = _databases([arguments.results])
    print(analysis.plan_power(database, arguments.run))
    return 0


def restore_command(arguments: argparse.Namespace) -> int:
    runner.require_root()
    machine = _machine(arguments)
    with machine.hold():
        left = runner.restore_leftovers(machine)
    print(f"{left} changes were undone" if left else "there is nothing to restore")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="blkcompare",
        description="Compares two block drivers in time, with intervals.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"blkcompare {__version__}")
    parser.add_argument(
        "--state", type=Path, default=STATE_DIR, metavar="DIR",
        help="where the journal of changes is (default: %(default)s)",
    )  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, function: Callable[[argparse.Namespace], int], text: str
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        return command

    def add_layers(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "files",
            nargs="*",
            type=Path,
            metavar="FILE.toml",
            help="configuration; a later file wins",
        )
        command.add_argument("--preset", help="what to measure; plan --list shows them")
        command.add_argument("--a", metavar="DRIVER", help="a name of plan --list, or FILE.toml")
        command.add_argument("--b", metavar="DRIVER", help="likewise")
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="e.g. matrix.jobs=1,2; may be repeated",
        )

    command = add("plan", plan_command, "make a plan, and say what it will do")
    add_layers(command)
    command.add_argument("-o", "--output", type=Path, metavar="PLAN.json", help="freeze the plan")
    command.add_argument(
        "--config",
        action="store_true",
        help="print the effective configuration, and where it is from",
    )
    command.add_argument("--list", action="store_true", help="list the presets and drivers")

    command = add(
        "run", run_command, "carry out a plan: FILE.toml, PLAN.json, or a directory of results"
    )
    add_layers(command)
    command.add_argument(
        "-d",
        "--directory",
        type=Path,
        help="the results (default: the name of the plan, with .results)",
    )
    command.add_argument(
        "--again", action="store_true", help="run the plan once more, beside a run that ended"
    )
    command.add_argument("--no-report", action="store_true", help="measure only")
    command.add_argument("--reboot", action="store_true", help="reboot if more boots are planned")
    command.add_argument(
        "--install-unit",
        action="store_true",
        help="install a unit of systemd that does all boots, and do nothing else",
    )
    command.add_argument(
        "--settle",
        type=int,
        default=60,
        metavar="SECONDS",
        help="what the unit waits after a boot (default: %(default)s)",
    )

    command = add("report", report_command, "write the report: HTML, CSV and JSON")
    command.add_argument("results", nargs="+", type=Path, help="directories or databases")
    command.add_argument("-o", "--output", type=Path, metavar="DIR")
    command.add_argument("--confidence", type=float, default=0.95, help="default: %(default)s")

    command = add("explain", explain_command, "look for what explains the modes of a cell")
    command.add_argument("results", type=Path)
    command.add_argument(
        "cell", nargs="?", help="without one: what an experiment, which has run, has shown"
    )
    command.add_argument("--run", help="the identifier of a run (default: the newest)")
    command.add_argument(
        "--experiment", type=Path, metavar="DIR", help="plan the experiment that decides"
    )
    command.add_argument(
        "--hypothesis", metavar="NAME", help="the one to decide about (default: the first)"
    )
    command.add_argument("--go", action="store_true", help="and carry it out")

    command = add("power", power_command, "say how many boots and cycles a verdict takes")
    command.add_argument("results", type=Path)
    command.add_argument("--run", help="the identifier of a run (default: the newest)")

    add("restore", restore_command, "undo what a run that was killed has changed")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    try:
        return parsed.function(parsed)
    except (ConfigError, MachineError, DatabaseError, runner.RunError, ValueError) as error:
        print(f"blkcompare: error: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(
            f"blkcompare: error: a library is missing here: {error}; install blkcompare by pipx or"
            " pip, or do this on another machine",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return 1
        where = f"{error.filename}: " if error.filename else ""
        print(f"blkcompare: error: {where}{error.strerror}", file=sys.stderr)
        return 1
    except (runner.Interrupted, KeyboardInterrupt):
        print("blkcompare: interrupted; the same command resumes the run", file=sys.stderr)
        return INTERRUPTED
