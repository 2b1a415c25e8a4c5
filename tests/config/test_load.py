"""The configuration tree: one set of values, from a file and from options, checked at the edge."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from sglang_omni.config.engine_options import TalkerOptions, ThinkerOptions
from sglang_omni.config.load import load_config, to_yaml
from sglang_omni.config.segment_options import SegmentOptions
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.protocol.errors import ConfigError
from tests.config.option_values import VALUES, leaf, nested

Load = Callable[..., Config]
Refused = Callable[[str, str], ConfigError]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads YAML text, with options over it."""

    def run(text: str, **overrides: Any) -> Config:
        file = tmp_path / "config.yaml"
        file.write_text(text, encoding="utf-8")
        return load_config(file, overrides)

    return run


@pytest.fixture
def refused(load: Load) -> Refused:
    """The error with which YAML text is refused, whose message must name `path`."""

    def run(text: str, path: str) -> ConfigError:
        with pytest.raises(ConfigError) as error:
            load(text)
        assert path in error.value.message
        return error.value

    return run


def test_without_file_and_options_the_defaults_hold() -> None:
    assert load_config(None, {}) == Config()


@pytest.mark.parametrize("path", VALUES)
def test_every_leaf_can_be_given_on_the_command_line(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # A minimum above the usual maximum of a segment needs both.
    given = {name: VALUES[name] for name in (path, "segment.max_tokens")}
    arguments = []
    for name, (text, _) in given.items():
        arguments += [f"--{name if '.' in name else name.replace('_', '-')}", text]
    assert main(["config", "view", *arguments]) == 0
    expected = load_config(None, {name: text for name, (text, _) in given.items()})
    for name, (_, value) in given.items():
        assert leaf(expected, name) == value
    assert capsys.readouterr().out == to_yaml(expected)


@pytest.mark.parametrize("path", VALUES)
def test_every_leaf_can_be_given_in_the_file(load: Load, path: str) -> None:
    text, value = VALUES[path]
    plain = text if isinstance(value, Path) else value
    tree = nested(path, list(plain) if isinstance(plain, tuple) else plain)
    tree.get("segment", {}).setdefault("max_tokens", 60)
    assert leaf(load(yaml.safe_dump(tree)), path) == value


def test_options_beat_the_file_leaf_by_leaf(load: Load) -> None:
    config = load(
        "port: 9000\nhost: 0.0.0.0\ntalker:\n  slots: 4\n  context: 512\n",
        **{"port": "9001", "talker.slots": "2", "thinker.tp_size": "2"},
    )
    assert config == Config(
        port=9001,
        host="0.0.0.0",
        talker=TalkerOptions(slots=2, context=512),
        thinker=ThinkerOptions(tp_size=2),
    )


@pytest.mark.parametrize("order", [1, -1])
def test_limits_that_bound_each_other_may_change_together(load: Load, order: int) -> None:
    names = ["segment.min_tokens", "segment.max_tokens"][::order]
    config = load_config(None, {name: VALUES[name][0] for name in names})
    assert config.segment == SegmentOptions(min_tokens=50, max_tokens=60)
    assert load("segment: {min_tokens: 50}", **{"segment.max_tokens": "60"}) == config


def test_what_view_prints_is_read_back_as_it_was(load: Load) -> None:
    everything = load_config(None, {path: text for path, (text, _) in VALUES.items()})
    endless = load_config(
        None, {"realtime.max_seconds": "inf", "thinker.server_args": "{a: .inf, b: [1, {c: null}]}"}
    )
    for config in (Config(), everything, endless):
        assert load(to_yaml(config)) == config
    assert load(to_yaml(replace(Config(), voice="小河"))).voice == "小河"
    assert "小河" in to_yaml(replace(Config(), voice="小河"))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("prot: 8000", "'prot'"),
        ("talker: {slot: 3}", "'talker.slot'"),
        ("segment: {units: {a: 1}}", "'segment.units'"),
        ("7: 8", "'7'"),
        ('"": 8', "''"),
        ("talker.slots: 3", "'talker.slots'"),
        ("talker: {talker.slots: 3}", "'talker.talker.slots'"),
    ],
)
def test_an_unknown_key_is_refused_and_named_with_the_known_ones(
    refused: Refused, text: str, path: str
) -> None:
    error = refused(text, f"unknown key {path}")
    assert "known keys: " in error.message
    assert error.param == path.strip("'")


def test_an_unknown_or_shortened_option_is_refused_and_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for option in ("--talker.speed", "--talker.slot", "--max-token"):
        with pytest.raises(SystemExit) as exit_:
            main(["config", "view", option, "3"])
        assert exit_.value.code == 2
        assert option in capsys.readouterr().err


def test_an_override_below_a_value_is_refused(load: Load) -> None:
    with pytest.raises(ConfigError, match="port must be a mapping, not 80"):
        load("port: 80", **{"port.number": "3"})


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"talker\.speed"):
        load_config(None, {"talker.speed": "3"})
    with pytest.raises(ConfigError, match="port must be an integer from 0 to 65535"):
        load_config(None, {"port.number": "3"})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("port: eighty", "port"),
        ("port: true", "port"),
        ("port: 80.5", "port"),
        ("port: null", "port"),
        ("port: 65536", "port"),
        ("port: 80.0", "port"),
        ("port: !!binary aGk=", "port"),
        ("host: !!binary aGk=", "host"),
        ("text_only: 1", "text_only"),
        ('text_only: "yes"', "text_only"),
        ("thinker: {gpus: !!set {0}}", "thinker.gpus"),
        ("api_key: [[a]]", "api_key"),
        ("request_timeout: .nan", "request_timeout"),
        ("port: -1", "port"),
        ("host: 5", "host"),
        ("voice: no", "voice"),
        ("device: gpu", "device"),
        ("device: [cpu]", "device"),
        ("log_level: 3", "log_level"),
        ("model_path: 3", "model_path"),
        ("max_tokens: 0", "max_tokens"),
        ("thinker: {tp_size: 0}", "thinker.tp_size"),
        ("thinker: {radix_cache: 1}", "thinker.radix_cache"),
        ("thinker: {gpus: 3}", "thinker.gpus"),
        ("thinker: {gpus: {0: 1}}", "thinker.gpus"),
        ("thinker: {gpus: [0, one]}", "thinker.gpus"),
        ("thinker: {gpus: [-1]}", "thinker.gpus"),
        ('thinker: {gpus: "0,,1"}', "thinker.gpus"),
        ("thinker: {context_length: 0}", "thinker.context_length"),
        ("thinker: {mem_fraction_static: 1.5}", "thinker.mem_fraction_static"),
        ("thinker: {mem_fraction_static: .nan}", "thinker.mem_fraction_static"),
        ("thinker: {server_args: 3}", "thinker.server_args"),
        ("thinker: {server_args: [a]}", "thinker.server_args"),
        ("thinker: {server_args: {1: a}}", "thinker.server_args"),
        ('thinker: {server_args: "{"}', "thinker.server_args"),
        ("talker: {slots: 0}", "talker.slots"),
        ("talker: {start_deadline_s: soon}", "talker.start_deadline_s"),
        ("talker: {start_deadline_s: true}", "talker.start_deadline_s"),
        ("talker: 5", "talker"),
        ("talker:", "talker"),
        ("segment: {min_tokens: 0}", "segment.min_tokens"),
        ("segment: {max_tokens: 4}", "segment.min_tokens"),
        ("segment: {first_max_wait_s: -1}", "segment.first_max_wait_s"),
    ],
)
def test_a_bad_value_is_refused_and_its_path_named(refused: Refused, text: str, path: str) -> None:
    assert refused(text, path).param == path


def test_numbers_are_converted_and_kept_in_type(load: Load) -> None:
    config = load('port: "80"\nthinker: {start_deadline_s: 5, gpus: "1,2"}\n')
    assert (config.port, config.thinker.gpus) == (80, (1, 2))
    assert type(config.thinker.start_deadline_s) is float
    assert load("thinker: {gpus: [1]}", **{"thinker.gpus": ""}).thinker.gpus == ()


@pytest.mark.parametrize("content", ["- a\n", "", "port: [\n", "\xff"], ids=str.__repr__)
def test_what_is_no_mapping_of_keys_is_refused_with_the_file_s_name(
    tmp_path: Path, content: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"mine\.yaml"):
        load_config(file, {})


def test_a_missing_file_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "view", "--config", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml" in capsys.readouterr().err


def test_values_of_python_are_taken_as_those_of_yaml() -> None:
    given: dict[str, Any] = {
        "model_path": Path("/models"),
        "thinker": {"gpus": (0, 1), "server_args": {"a": (1,), "b": {"c": Path("/d")}}},
    }
    config = load_config(None, {**given, "thinker.tp_size": 2, "talker": TalkerOptions(slots=3)})
    assert config.model_path == Path("/models")
    assert (config.thinker.tp_size, config.thinker.gpus) == (2, (0, 1))
    assert config.thinker.server_args == {"a": [1], "b": {"c": "/d"}}
    assert config.talker.slots == 3
    # What was passed stays as it was.
    assert "tp_size" not in given["thinker"]


def test_options_are_frozen_and_checked_however_they_are_made() -> None:
    with pytest.raises(ValidationError):
        replace(Config(), port=-1)
    with pytest.raises(ValidationError):
        TalkerOptions(slot=3)  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        Config().port = 1  # type: ignore[misc]


def test_arguments_that_yaml_cannot_hold_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"thinker\.server_args must be a mapping"):
        load_config(None, {"thinker": {"server_args": {"a": object()}}})
