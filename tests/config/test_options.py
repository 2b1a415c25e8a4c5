"""The configuration tree: one set of values, from a file and from options, checked at the edge."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sglang_omni.config.options import (
    Config,
    TalkerOptions,
    ThinkerOptions,
    list_options,
    load_config,
    to_yaml,
)
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.pipeline.segment import SegmentSettings
from sglang_omni.protocol.errors import ConfigError

# A value for every leaf that is not its default, as a command line writes it, and as it is.
VALUES = {
    "model_path": ("/models/ming", Path("/models/ming")),
    "served_model_name": ("ming", "ming"),
    "host": ("::1", "::1"),
    "port": ("9000", 9000),
    "device": ("cpu", "cpu"),
    "dtype": ("bfloat16", "bfloat16"),
    "placement": ("auto", "auto"),
    "voice": ("DB30", "DB30"),
    "voice_alias": ("alloy=DB30", ("alloy=DB30",)),
    "voices_dir": ("/voices", Path("/voices")),
    "max_tokens": ("100", 100),
    "max_body_bytes": ("1000", 1000),
    "drain_timeout": ("5", 5.0),
    "request_timeout": ("60", 60.0),
    "unread_bytes": ("100000", 100_000),
    "unread_timeout": ("5", 5.0),
    "api_key": ("file:keys,env:KEYS", ("file:keys", "env:KEYS")),
    "admin_api_key": ("env:ADMIN", ("env:ADMIN",)),
    "cors_origin": ("https://example.com", ("https://example.com",)),
    "allowed_host": ("a.example,b.example", ("a.example", "b.example")),
    "tls_certificate": ("cert.pem", Path("cert.pem")),
    "tls_key": ("key.pem", Path("key.pem")),
    "tls_client_ca": ("ca.pem", Path("ca.pem")),
    "text_only": ("true", True),
    "allowed_media_domain": ("example.com,.example.org", ("example.com", ".example.org")),
    "allowed_local_media_path": ("/media", Path("/media")),
    "log_level": ("debug", "debug"),
    "log_format": ("json", "json"),
    "log_folder": ("/logs", Path("/logs")),
    "audit_log": ("/audit.jsonl", Path("/audit.jsonl")),
    "verbose": ("true", True),
    "otlp_endpoint": ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
    "profile_folder": ("profiles", Path("profiles")),
    "http.max_header_bytes": ("2000", 2000),
    "http.max_url_bytes": ("1000", 1000),
    "http.header_timeout": ("5", 5.0),
    "http.keep_alive_timeout": ("20", 20.0),
    "http.min_body_rate": ("2000", 2000),
    "http.body_window": ("5", 5.0),
    "http.max_bodies_bytes": ("2000000", 2_000_000),
    "http.max_bodies_rate": ("2000000", 2_000_000),
    "rate_limit.requests_per_minute": ("60", 60),
    "rate_limit.tokens_per_minute": ("90000", 90_000),
    "rate_limit.concurrent_requests": ("4", 4),
    "rate_limit.concurrent_sessions": ("2", 2),
    "admission.queue_length": ("0", 0),
    "admission.queue_seconds": ("2", 2.0),
    "media.processes": ("3", 3),
    "media.file_bytes": ("1000", 1000),
    "media.pixels": ("1000", 1000),
    "media.video_frames": ("10", 10),
    "media.video_pixels": ("1000000", 1_000_000),
    "media.video_seconds": ("1.5", 1.5),
    "media.audio_seconds": ("2", 2.0),
    "media.fetch_seconds": ("3", 3.0),
    "media.decode_seconds": ("4", 4.0),
    "media.memory_bytes": ("5000", 5000),
    "media.max_held_bytes": ("6000", 6000),
    "media.image_min_pixels": ("1024", 1024),
    "media.image_max_pixels": ("2048", 2048),
    "media.video_fps": ("1", 1.0),
    "media.video_max_sampled": ("16", 16),
    "image_encoder.tp_size": ("2", 2),
    "image_encoder.gpus": ("0,1", (0, 1)),
    "image_encoder.max_patches": ("4096", 4096),
    "image_encoder.graphs": ("false", False),
    "image_encoder.cache_bytes": ("0", 0),
    "image_encoder.start_deadline_s": ("60", 60.0),
    "image_encoder.phase_deadline_s": ("50", 50.0),
    "image_encoder.step_deadline_s": ("20", 20.0),
    "audio_encoder.gpus": ("1", (1,)),
    "audio_encoder.max_seconds": ("30", 30.0),
    "audio_encoder.cache_bytes": ("0", 0),
    "audio_encoder.start_deadline_s": ("60", 60.0),
    "audio_encoder.phase_deadline_s": ("50", 50.0),
    "audio_encoder.step_deadline_s": ("20", 20.0),
    "thinker.tp_size": ("2", 2),
    "thinker.gpus": ("0,3", (0, 3)),
    "thinker.context_length": ("4096", 4096),
    "thinker.max_total_tokens": ("8192", 8192),
    "thinker.max_running_requests": ("4", 4),
    "thinker.mem_fraction_static": ("0.7", 0.7),
    "thinker.radix_cache": ("false", False),
    "thinker.deterministic": ("true", True),
    "thinker.start_deadline_s": ("60", 60.0),
    "thinker.phase_deadline_s": ("50", 50.0),
    "thinker.step_deadline_s": ("20", 20.0),
    "thinker.server_args": (
        "{page_size: 16, attention_backend: triton}",
        {"page_size": 16, "attention_backend": "triton"},
    ),
    "talker.gpus": ("1,2", (1, 2)),
    "talker.replicas": ("2", 2),
    "talker.slots": ("2", 2),
    "talker.min_patches": ("0", 0),
    "talker.max_patches": ("50", 50),
    "talker.context": ("512", 512),
    "talker.graphs": ("false", False),
    "talker.fp8": ("true", True),
    "talker.admission": ("queue", "queue"),
    "talker.start_deadline_s": ("1.5", 1.5),
    "talker.phase_deadline_s": ("50", 50.0),
    "talker.step_deadline_s": ("20", 20.0),
    "realtime.max_sessions": ("3", 3),
    "realtime.max_seconds": ("60", 60.0),
    "realtime.idle_seconds": ("30", 30.0),
    "realtime.frame_bytes": ("1000000", 1_000_000),
    "realtime.conversation_bytes": ("2000000", 2_000_000),
    "realtime.turn_seconds": ("20", 20.0),
    "realtime.send_bytes": ("3000", 3000),
    "realtime.stall_seconds": ("5", 5.0),
    "voices.min_seconds": ("0.5", 0.5),
    "voices.max_seconds": ("20", 20.0),
    "voices.file_bytes": ("1000", 1000),
    "voices.stored": ("5", 5),
    "voices.stored_per_key": ("2", 2),
    "voices.cached": ("7", 7),
    "segment.min_tokens": ("50", 50),
    "segment.max_tokens": ("60", 60),
    "segment.first_min_tokens": ("2", 2),
    "segment.first_max_wait_s": ("0.1", 0.1),
}


Load = Callable[..., Config]
Refused = Callable[[str, str], str]


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
    """The message, which must name `path`, with which YAML text is refused."""

    def run(text: str, path: str) -> str:
        with pytest.raises(ConfigError) as error:
            load(text)
        assert path in error.value.message
        return error.value.message

    return run


def leaf(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, name)
    return config


def nested(path: str, value: Any) -> Any:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def test_without_file_and_options_the_defaults_hold() -> None:
    assert load_config(None, {}) == Config()
    assert {option.path: option.default for option in list_options()} == {
        option.path: leaf(Config(), option.path) for option in list_options()
    }


def test_the_options_are_the_leaves_of_the_tree() -> None:
    assert [option.path for option in list_options()] == list(VALUES)
    assert [name for name, (_, value) in VALUES.items() if value == leaf(Config(), name)] == []


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
    assert config.segment == SegmentSettings(min_tokens=50, max_tokens=60)
    assert load("segment: {min_tokens: 50}", **{"segment.max_tokens": "60"}) == config


def test_what_view_prints_is_read_back_as_it_was(load: Load) -> None:
    everything = load_config(None, {path: text for path, (text, _) in VALUES.items()})
    for config in (Config(), everything):
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
    ],
)
def test_an_unknown_key_is_refused_and_named_with_the_known_ones(
    refused: Refused, text: str, path: str
) -> None:
    assert "known keys: " in refused(text, f"unknown key {path}")


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
    with pytest.raises(ConfigError, match="port must be of type int"):
        load_config(None, {"port.number": "3"})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("port: eighty", "port"),
        ("port: true", "port"),
        ("port: 80.5", "port"),
        ("port: null", "port"),
        ("port: 65536", "port"),
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
        ("segment: {min_tokens: 0}", "segment min_tokens"),
        ("segment: {max_tokens: 4}", "segment min_tokens"),
        ("segment: {first_max_wait_s: -1}", "segment first_max_wait_s"),
    ],
)
def test_a_bad_value_is_refused_and_its_path_named(refused: Refused, text: str, path: str) -> None:
    refused(text, path)


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
