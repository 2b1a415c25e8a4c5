"""The server's configuration: one tree of frozen dataclasses, validated at the edge.

A YAML file and command-line options fill the same tree; options win. Unknown keys are refused.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.config.media_options import MediaOptions
from sglang_omni.config.option_types import (
    Bytes,
    Count,
    Device,
    DType,
    Fraction,
    Index,
    Placement,
    Port,
    Range,
    Seconds,
    StepSeconds,
)
from sglang_omni.config.rate_limit_options import RateLimitOptions
from sglang_omni.engines.speech.contract import AdmissionPolicy
from sglang_omni.pipeline.segment import SegmentSettings
from sglang_omni.protocol.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True)
class ThinkerOptions:
    """The SGLang engine. An unset value is left to SGLang; `tp_size` is then the placement's, or 1.

    `server_args` passes further SGLang server arguments through, by name. A start takes up to
    `start_deadline_s`, any one phase of it up to `phase_deadline_s`. An engine whose step takes
    longer than `step_deadline_s` has hung and is restarted; these three are the same for every
    engine.
    """

    tp_size: Count | None = None
    gpus: tuple[Index, ...] = ()
    context_length: Count | None = None
    max_total_tokens: Count | None = None
    max_running_requests: Count | None = None
    mem_fraction_static: Fraction | None = None
    radix_cache: bool = True
    deterministic: bool = False
    start_deadline_s: Seconds = 900.0
    phase_deadline_s: Seconds = 600.0
    step_deadline_s: StepSeconds = 12.0
    server_args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TalkerOptions:
    """The speech engine. `gpus` are the cards it runs on (unset: the placement's choice, or the
    first), each with a replica of it; a CPU has `replicas` of it. `slots` bounds the requests that
    speak at once in each (unset: 8 on a CPU, 128 on a card); `context` is the KV length of each;
    `graphs` has the steps captured in CUDA graphs. With graphs the step times are known, and under
    `admission` `real_time` a request for which somebody's speech would stall is refused; under
    `queue` it waits. `fp8` has the flow model multiply in eight bits where a step has many rows;
    that needs graphs in bfloat16."""

    gpus: tuple[Index, ...] = ()
    replicas: Count = 1
    slots: Count | None = None
    min_patches: Index = 3
    max_patches: Count = 1000
    context: Count = 2048
    graphs: bool = True
    fp8: bool = False
    admission: AdmissionPolicy = "real_time"
    start_deadline_s: Seconds = 300.0
    phase_deadline_s: Seconds = 200.0
    step_deadline_s: StepSeconds = 12.0


@dataclass(frozen=True)
class ImageEncoderOptions:
    """The engine for pictures and video frames. `gpus` are the cards of its `tp_size` ranks
    (unset: the placement's choice, or the first ones), or of so many for each of several replicas,
    one after the other; a forward pass takes up to `max_patches` patches of 16 x 16 pixels (unset:
    32,768 on a card, 4,096 on a CPU), and a longer video several passes.
    `graphs` captures it in CUDA graphs; `cache_bytes` of features are kept for pictures that come
    again."""

    tp_size: Annotated[int, Range(1, 4)] = 1
    gpus: tuple[Index, ...] = ()
    max_patches: Count | None = None
    graphs: bool = True
    cache_bytes: Bytes = 1 << 30
    start_deadline_s: Seconds = 300.0
    phase_deadline_s: Seconds = 200.0
    step_deadline_s: StepSeconds = 12.0


@dataclass(frozen=True)
class AudioEncoderOptions:
    """The engine for audio clips, a replica on each of the cards `gpus` (unset: the placement's
    choice, or the first). A forward pass takes up to `max_seconds` of clips (unset: 600 on a card,
    120 on a CPU), or one clip that is longer; `cache_bytes` of features are kept for clips that
    come again."""

    gpus: tuple[Index, ...] = ()
    max_seconds: Annotated[float, Range(1)] | None = None
    cache_bytes: Bytes = 256 << 20
    start_deadline_s: Seconds = 300.0
    phase_deadline_s: Seconds = 200.0
    step_deadline_s: StepSeconds = 12.0


@dataclass(frozen=True)
class AdmissionOptions:
    """What happens to requests for which the thinker or the talker has no room: at most
    `queue_length` wait for each, none longer than `queue_seconds`; the others are refused."""

    queue_length: Index = 64
    queue_seconds: Seconds = 30.0


@dataclass(frozen=True)
class RealtimeOptions:
    """Sessions of `/v1/realtime`, of which there are at most `max_sessions`.

    One is closed after `max_seconds`, or after `idle_seconds` without an event of its client. A
    frame of more than `frame_bytes` closes it (15 MiB of audio are 20 MiB of base64). Beyond
    `conversation_bytes` the oldest sound and pictures are let go; a turn may have `turn_seconds`.
    While `send_bytes` wait for a slow reader its answer pauses; one that takes nothing for
    `stall_seconds` is closed.
    """

    max_sessions: Count = 64
    max_seconds: Seconds = 3600.0
    idle_seconds: Seconds = 600.0
    frame_bytes: Count = 24 << 20
    conversation_bytes: Count = 64 << 20
    turn_seconds: Annotated[float, Range(1)] = 300.0
    send_bytes: Count = 1 << 20
    stall_seconds: Annotated[float, Range(0.1)] = 20.0


@dataclass(frozen=True)
class VoiceOptions:
    """Voices that users bring. A recording has `min_seconds` to `max_seconds` and at most
    `file_bytes`. With `voices_dir`, at most `stored` are kept for all and `stored_per_key` for each
    key. The latest `cached` recordings need not be encoded again."""

    min_seconds: Annotated[float, Range(0.2)] = 1.0
    max_seconds: Annotated[float, Range(1, 30)] = 30.0
    file_bytes: Count = 10 << 20
    stored: Count = 1000
    stored_per_key: Count = 100
    cached: Count = 256


@dataclass(frozen=True)
class Config:
    """Everything `sgl-omni serve` can be told.

    Without `model_path` Ming-mini is served, which comes with the package. `placement` says who
    chooses cards: with `auto` a plan is made from the checkpoint's sizes and the cards found,
    around what is given; with `manual` what is not given is the first card. `max_tokens` bounds one
    answer.
    `voice` is the preset used when a request names none; unset, the checkpoint's first. Each
    `voice_alias` ALIAS=PRESET gives a preset a second name, for clients that know only their own.
    Voices that users store are kept in `voices_dir`; without it none can be stored.
    `text_only` starts no encoders and refuses media. `allowed_media_domain` restricts downloads
    to these hosts (unset: any public host); without `allowed_local_media_path` no file of this
    machine is read. `max_body_bytes` bounds a request before it is parsed. Told to end, the server
    begins nothing new and lets what it has begun go on for `drain_timeout` seconds. No request may
    take longer than `request_timeout` seconds, however long it asks for. Up to `unread_bytes` of an
    answer wait for a client who reads slowly; one who reads nothing for `unread_timeout` seconds is
    cut off.

    `api_key` and `admin_api_key` name where keys are: `file:PATH` or `env:NAME`. Without the first
    everybody may ask, without the second nobody may do what an administrator does. Pages of
    `cors_origin` may use the server. Requests must name `localhost`, an address of the loopback or
    an `allowed_host` in their Host header where the server is bound to the loopback and asks for no
    keys, or where `allowed_host` is given ("*": any). With `tls_certificate` and `tls_key` it
    speaks TLS; with `tls_client_ca` only to clients that have a certificate of that authority.
    Traces go to `otlp_endpoint` (OTLP over HTTP), profiles of engines to `profile_folder`, if
    given.

    What engines print goes into files in `log_folder` (unset: a folder for this port in
    `$XDG_STATE_HOME/sglang-omni`), which keep their size; with `verbose`, or a `log_level` of
    `debug`, it is shown on the terminal as well. Refusals leave one line of JSON each, without
    content, in the log at level `info`, or in the file `audit_log`; at most 20 a second.
    """

    model_path: Path | None = None
    served_model_name: str = "ming-omni"
    host: str = "127.0.0.1"
    port: Port = 8000
    device: Device = "auto"
    dtype: DType = "auto"
    placement: Placement = "manual"
    voice: str | None = None
    voice_alias: tuple[str, ...] = ()
    voices_dir: Path | None = None
    max_tokens: Count = 2048
    max_body_bytes: Count = 96 << 20
    drain_timeout: Seconds = 30.0
    request_timeout: Annotated[float, Range(1)] = 600.0
    unread_bytes: Annotated[int, Range(65_536)] = 2 << 20
    unread_timeout: Annotated[float, Range(1)] = 30.0
    api_key: tuple[str, ...] = ()
    admin_api_key: tuple[str, ...] = ()
    cors_origin: tuple[str, ...] = ()
    allowed_host: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    text_only: bool = False
    allowed_media_domain: tuple[str, ...] = ()
    allowed_local_media_path: Path | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    log_folder: Path | None = None
    audit_log: Path | None = None
    verbose: bool = False
    otlp_endpoint: str | None = None
    profile_folder: Path | None = None
    http: HttpOptions = field(default_factory=HttpOptions)
    rate_limit: RateLimitOptions = field(default_factory=RateLimitOptions)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    media: MediaOptions = field(default_factory=MediaOptions)
    image_encoder: ImageEncoderOptions = field(default_factory=ImageEncoderOptions)
    audio_encoder: AudioEncoderOptions = field(default_factory=AudioEncoderOptions)
    thinker: ThinkerOptions = field(default_factory=ThinkerOptions)
    talker: TalkerOptions = field(default_factory=TalkerOptions)
    realtime: RealtimeOptions = field(default_factory=RealtimeOptions)
    voices: VoiceOptions = field(default_factory=VoiceOptions)
    segment: SegmentSettings = field(default_factory=SegmentSettings)


@dataclass(frozen=True)
class Option:
    """One leaf of the tree: its dotted path, type and default."""

    path: str
    type: Any
    default: Any


def list_options(cls: type = Config, prefix: str = "") -> Iterator[Option]:
    """Every leaf of the configuration tree, depth first."""
    hints, blank = get_type_hints(cls, include_extras=True), cls()
    for entry in fields(cls):
        kind, value = hints[entry.name], getattr(blank, entry.name)
        if is_dataclass(value):
            yield from list_options(type(value), f"{prefix}{entry.name}.")
        else:
            yield Option(prefix + entry.name, kind, value)


def load_config(file: Path | None, overrides: Mapping[str, Any]) -> Config:
    """Read a YAML file (or none), then apply `overrides` by dotted path.

    Raises `ConfigError` naming the key at fault.
    """
    values = _read_yaml(file) if file else {}
    for path, value in overrides.items():
        _set_by_path(values, path, value)
    # Applied at once: limits that bound each other may change together.
    return _apply(Config(), values, "")


def to_yaml(config: Config) -> str:
    """The resolved configuration as YAML that `load_config` reads back."""
    return yaml.safe_dump(_to_plain(config), sort_keys=False, allow_unicode=True)


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must hold a mapping")
    return content


def _set_by_path(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a leaf of nested mappings by its dotted path."""
    *sections, leaf = path.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{section} must be a mapping, not {values!r}", param=section)
    values[leaf] = value


def _apply(node: T, values: Mapping[str, Any], prefix: str) -> T:
    """Replace fields of a dataclass by the values of a mapping, recursively."""
    hints = get_type_hints(type(node), include_extras=True)
    changes: dict[str, Any] = {}
    for name, value in values.items():
        path = prefix + str(name)
        if name not in hints:
            raise ConfigError(f"unknown key {path!r}; known here: {', '.join(hints)}", param=path)
        current = getattr(node, name)
        if is_dataclass(current):
            changes[name] = _apply(current, _parse_mapping(value, path), path + ".")
        else:
            changes[name] = convert(value, hints[name], path)
    return replace(node, **changes)  # type: ignore[type-var]


def convert(value: Any, kind: Any, path: str) -> Any:
    """Check `value`, from YAML or a command line, against a type. Raises `ConfigError`."""
    origin, arms = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _check_range(convert(value, arms[0], path), arms[1], path)
    if origin is Literal:
        if value in arms:
            return value
        raise ConfigError(f"{path} must be one of {', '.join(arms)}, not {value!r}", param=path)
    if type(None) in arms:
        return None if value is None else convert(value, arms[0], path)
    if origin is tuple:
        return tuple(convert(item, arms[0], path) for item in _parse_list(value, path))
    return _parse_scalar(value, kind, path) if origin is None else _parse_mapping(value, path)


def _check_range(value: Any, bounds: Range, path: str) -> Any:
    if bounds.least <= value <= bounds.most:
        return value
    most = "" if bounds.most == math.inf else f" and at most {bounds.most}"
    raise ConfigError(f"{path} must be at least {bounds.least}{most}, not {value}", param=path)


def _parse_list(value: Any, path: str) -> list[Any]:
    """A list, or what a command line has for one: "0,1"."""
    if isinstance(value, str):
        return value.split(",") if value else []
    if isinstance(value, list):
        return value
    raise ConfigError(f"{path} must be a list, not {value!r}", param=path)


def _parse_mapping(value: Any, path: str) -> Mapping[str, Any]:
    """A mapping, or what a command line has for one: YAML such as "{page_size: 16}"."""
    try:
        content = yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError:
        content = None
    if isinstance(content, Mapping) and all(isinstance(name, str) for name in content):
        return content
    raise ConfigError(f"{path} must be a mapping of names to values, not {value!r}", param=path)


def _parse_scalar(value: Any, kind: type, path: str) -> Any:
    if kind is bool and value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and kind in (int, float, Path):
        with suppress(ValueError):  # Refused below, by name.
            return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    # A bool is an int in Python, but never a number here.
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ConfigError(f"{path} must be of type {kind.__name__}, not {value!r}", param=path)


def _to_plain(value: Any) -> Any:
    if is_dataclass(value):
        return {entry.name: _to_plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value
