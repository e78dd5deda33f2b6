# SPDX-License-Identifier: GPL-2.0
"""Tests of the configuration and its layers."""

import tomllib

import pytest

from blkcompare.config import (
    KEYS,
    Config,
    ConfigError,
    format_size,
    load_config,
    packaged,
    parse_size,
    toml_value,
)


def test_later_layers_win(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('preset = "smoke"\ncycles = 7\n[load]\nruntime = 3\n')
    config = load_config(None, [file], ["cycles=9"])
    assert (config["boots"], config.source["boots"]) == (1, "preset smoke")
    assert (config["load.runtime"], config.source["load.runtime"]) == (3, "x.toml")
    assert (config["cycles"], config.source["cycles"]) == (9, "command line")
    assert (config["margin"], config.source["margin"]) == (0.01, "default")


def test_preset_of_the_command_line_wins(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('preset = "smoke"\n')
    assert load_config("core", [file], [])["boots"] == 5


@pytest.mark.parametrize(
    "assignment, key, value",
    [
        ("matrix.jobs=1,2", "matrix.jobs", [1, 2]),
        ("matrix.jobs=[3]", "matrix.jobs", [3]),
        ("matrix.bs=4K", "matrix.bs", [4096]),
        ("matrix.bs=4K,1M", "matrix.bs", [4096, 1 << 20]),
        ("drivers.A.driver=null_blk", "drivers.A.driver", "null_blk"),
        ("drivers.B.attributes.mbps=5", "drivers.B.attributes", {"mbps": 5}),
        ("disk.size=2G", "disk.size", 2 << 30),
        ("disk.fill=false", "disk.fill", False),
        ("name=a=b", "name", "a=b"),
    ],
)
def test_overrides(assignment, key, value):
    assert load_config(None, [], [assignment])[key] == value


@pytest.mark.parametrize(
    "assignment, message",
    [
        ("matrix.job=1", "there is no key matrix.job; is it matrix.jobs"),
        ("cycles=0", "cycles: 0 is not at least 1"),
        ("cycles=true", "True is not an integer"),
        ("cycles", "there is no '='"),
        ("disk.size=4X", "'4X' is not a size"),
        ("load.engine=mmap", "'mmap' is none of 'io_uring', 'libaio', 'psync'"),
        ("margin=2", "margin: 2 is not from"),
        ("matrix.jobs=1,1", "twice"),
        ("matrix.rw=[]", "empty"),
        ("load.direct=1", "1 is not true or false"),
    ],
)
def test_bad_overrides(assignment, message):
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        load_config(None, [], [assignment])


def test_bad_files(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(None, [tmp_path / "none"], [])
    file = tmp_path / "x.toml"
    file.write_text("cycles = \n")
    with pytest.raises(ConfigError, match="x.toml is not TOML"):
        load_config(None, [file], [])
    file.write_text("[load]\nspeed = 3\n")
    with pytest.raises(ConfigError, match="x.toml: there is no key load.speed"):
        load_config(None, [file], [])
    with pytest.raises(ConfigError, match="there is no preset huge; there are core"):
        load_config("huge", [], [])


def test_dump_can_be_read_again():
    config = load_config("core", [], ["drivers.A.attributes.mbps=5", 'name="a \\"b\\" \\\\"'])
    again = Config()
    again.apply(tomllib.loads(config.dump()), "dump")
    assert again.values == config.values


def test_dump_names_the_source():
    lines = load_config("core", [], ["cycles=9"]).dump().splitlines()
    assert any(line.startswith("cycles = 9 ") and "(command line)" in line for line in lines)


def test_defaults_are_valid():
    for key, value in KEYS.items():
        if value.default != "" and value.default != []:
            assert value.check(value.default) == value.default, key


def test_sizes():
    for size in (1, 512, 4096, 1 << 20, 3 << 30, 1536):
        assert parse_size(format_size(size)) == size
    assert (format_size(4096), format_size(1536), format_size(16 << 20)) == ("4k", "1536", "16m")


def test_toml_value_of_a_control_character():
    assert tomllib.loads("x = " + toml_value("a\n\x7f"))["x"] == "a\n\x7f"


def test_presets_and_descriptions_have_a_first_line():
    for kind in ("presets", "drivers"):
        for name, text in packaged(kind).items():
            assert text.splitlines()[0] == "# SPDX-License-Identifier: GPL-2.0", name
            assert text.splitlines()[1].startswith("# "), name
