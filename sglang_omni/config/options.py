"""Defines the server's configuration: one tree of frozen dataclasses.

It is read from a YAML file and from command-line options, which override the file. Unknown keys and
values out of range are rejected.
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
    """Options of the thinker, an SGLang engine. SGLang chooses values that are unset.

    Attributes:
        tp_size: Tensor-parallel size (unset: the placement's choice, or 1).
        gpus: GPUs of the ranks.
        server_args: Further SGLang server arguments by name.
        start_deadline_s: Time limit for the start. This and the next two are the same for every
            engine.
        phase_deadline_s: Time limit for each phase of the start.
        step_deadline_s: Time limit for a step; beyond it the engine has hung and is restarted.
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


def get_thinker_tp_size(options: ThinkerOptions) -> int:
    """Ranks of the thinker: as many as asked for, or as the cards that are named, or one.

    Raises `ConfigError` when the two disagree.
    """
    ranks = options.tp_size or len(options.gpus) or 1
    if options.gpus and len(set(options.gpus)) != ranks:
        raise ConfigError(
            f"thinker.gpus must name {ranks} different cards, one for each rank, "
            f"not {', '.join(map(str, options.gpus))}",
            param="thinker.gpus",
        )
    return ranks


@dataclass(frozen=True)
class TalkerOptions:
    """Options of the talker, the speech engine.

    Attributes:
        gpus: GPUs to run on, one replica for each entry (unset: the placement's choice, or the
            first).
        replicas: Number of replicas on a CPU.
        slots: Maximum number of requests that generate speech at once in a replica (unset: 8 on a
            CPU, 128 on a GPU).
        context: KV length of a slot in tokens.
        graphs: Whether steps are captured in CUDA graphs. Step times are known then.
        fp8: Whether the flow model multiplies in FP8 in large batches. Needs graphs and bfloat16.
        admission: With `real_time` and graphs a request is rejected if it would make other speech
            stall; with `queue` it waits.
    """

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
    """Options of the engine for images and video frames.

    Attributes:
        tp_size: Tensor-parallel size.
        gpus: GPUs of the ranks (unset: the placement's choice, or the first ones). A multiple of
            `tp_size` makes several replicas.
        max_patches: Maximum patches of 16 x 16 pixels in a forward pass (unset: 32,768 on a GPU,
            4,096 on a CPU). A longer video takes several passes.
        graphs: Whether the forward pass is captured in CUDA graphs.
        cache_bytes: Size of the feature cache for repeated images.
    """

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
    """Options of the engine for audio.

    Attributes:
        gpus: GPUs to run on, one replica for each (unset: the placement's choice, or the first).
        max_seconds: Maximum audio in a forward pass (unset: 600 on a GPU, 120 on a CPU). A longer
            clip takes a pass of its own.
        cache_bytes: Size of the feature cache for repeated clips.
    """

    gpus: tuple[Index, ...] = ()
    max_seconds: Annotated[float, Range(1)] | None = None
    cache_bytes: Bytes = 256 << 20
    start_deadline_s: Seconds = 300.0
    phase_deadline_s: Seconds = 200.0
    step_deadline_s: StepSeconds = 12.0


@dataclass(frozen=True)
class AdmissionOptions:
    """Options of the admission queues of the thinker and the talker.

    At most `queue_length` requests wait for each engine, none longer than `queue_seconds`. Others
    are rejected.
    """

    queue_length: Index = 64
    queue_seconds: Seconds = 30.0


@dataclass(frozen=True)
class RealtimeOptions:
    """Limits of the sessions of `/v1/realtime`.

    Attributes:
        max_sessions: Maximum number of sessions.
        max_seconds: Maximum duration of a session.
        idle_seconds: Seconds without a client event after which a session is closed.
        frame_bytes: Maximum size of a frame; a larger one closes the session. 15 MiB of audio are
            20 MiB of base64.
        conversation_bytes: Maximum size of a conversation; beyond it the oldest audio and images
            are dropped.
        turn_seconds: Maximum length of a user turn.
        send_bytes: Queued bytes from which a response pauses for a slow client.
        stall_seconds: Seconds without reading after which a client is disconnected.
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
    """Limits of the voices of users.

    Attributes:
        min_seconds: Minimum length of a recording.
        max_seconds: Maximum length of a recording.
        file_bytes: Maximum size of a recording's file.
        stored: Maximum number of stored voices (with `voices_dir`).
        stored_per_key: Maximum number of stored voices of a key.
        cached: Number of recent recordings whose encoding is cached.
    """

    min_seconds: Annotated[float, Range(0.2)] = 1.0
    max_seconds: Annotated[float, Range(1, 30)] = 30.0
    file_bytes: Count = 10 << 20
    stored: Count = 1000
    stored_per_key: Count = 100
    cached: Count = 256


@dataclass(frozen=True)
class Config:
    """Options of `sgl-omni serve`.

    Attributes:
        model_path: Folder of the checkpoint (unset: Ming-mini, which is part of the package).
        placement: How GPUs are assigned. `auto` plans from the sizes of the checkpoint and the
            GPUs found, and keeps the assignments that are set; `manual` uses the first GPU for
            engines without an assignment.
        voice: Preset voice of requests that name none (unset: the checkpoint's first).
        voice_alias: ALIAS=PRESET gives a preset a second name, for clients with fixed voice names.
        voices_dir: Folder of the voices that users store; unset, voices cannot be stored.
        max_tokens: Maximum length of an answer.
        max_body_bytes: Maximum size of a request's body, checked before it is parsed.
        drain_timeout: Seconds that running requests have at a shutdown. New ones are rejected.
        request_timeout: Maximum duration of a request in seconds, whatever its own timeout.
        unread_bytes: Maximum bytes of an answer to buffer for a slow client.
        unread_timeout: Seconds without reading after which a client is disconnected.
        api_key: Source of API keys, `file:PATH` or `env:NAME`. Unset, no key is required.
        admin_api_key: Source of administrators' keys. Unset, the admin routes are closed.
        cors_origin: Origins of web pages that may use the server.
        allowed_host: Names that the Host header may have besides `localhost` and loopback
            addresses ("*": any). The header is checked if this is set, or if the server is bound
            to the loopback and requires no key.
        tls_certificate: Certificate for TLS, with `tls_key`.
        tls_client_ca: Authority that must have signed the client's certificate.
        text_only: Start no encoders and reject media.
        allowed_media_domain: Hosts that media may be downloaded from (unset: any public host).
        allowed_local_media_path: Folder that local media may be read from (unset: none).
        log_folder: Folder of the engines' output, in files of bounded size (unset: a folder for
            this port in `$XDG_STATE_HOME/sglang-omni`).
        audit_log: File for rejected requests, one line of JSON each without content, at most 20 a
            second (unset: the log, at level `info`).
        verbose: Show the engines' output on the terminal as well, like `log_level` `debug`.
        otlp_endpoint: Where traces are sent (OTLP over HTTP).
        profile_folder: Folder of the engines' profiles.
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
    """A leaf of the configuration tree: its dotted path, type and default."""

    path: str
    type: Any
    default: Any


def list_options(cls: type = Config, prefix: str = "") -> Iterator[Option]:
    """Yield every leaf of the configuration tree, depth first."""
    hints, defaults = get_type_hints(cls, include_extras=True), cls()
    for entry in fields(cls):
        default = getattr(defaults, entry.name)
        if is_dataclass(default):
            yield from list_options(type(default), f"{prefix}{entry.name}.")
        else:
            yield Option(prefix + entry.name, hints[entry.name], default)


def load_config(file: Path | None, overrides: Mapping[str, Any]) -> Config:
    """Read a YAML file if given, and apply `overrides` by dotted path.

    Raises:
        ConfigError: A key or value is invalid; `param` names the key.
    """
    values = _read_yaml(file) if file else {}
    for path, value in overrides.items():
        _set_by_path(values, path, value)
    # Applied together, because limits that depend on each other may change at the same time.
    return _apply(Config(), values, "")


def to_yaml(config: Config) -> str:
    """Return the resolved configuration as YAML that `load_config` can read."""
    return yaml.safe_dump(_to_plain(config), sort_keys=False, allow_unicode=True)


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must contain a mapping")
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
            raise ConfigError(f"unknown key {path!r}; known keys: {', '.join(hints)}", param=path)
        current = getattr(node, name)
        if is_dataclass(current):
            changes[name] = _apply(current, _parse_mapping(value, path), path + ".")
        else:
            changes[name] = convert(value, hints[name], path)
    return replace(node, **changes)  # type: ignore[type-var]


def convert(value: Any, expected_type: Any, path: str) -> Any:
    """Convert a value from YAML or the command line to a type. Raises `ConfigError`."""
    origin, args = get_origin(expected_type), get_args(expected_type)
    if origin is Annotated:
        return _check_range(convert(value, args[0], path), args[1], path)
    if origin is Literal:
        if value in args:
            return value
        raise ConfigError(f"{path} must be one of {', '.join(args)}, not {value!r}", param=path)
    if type(None) in args:
        return None if value is None else convert(value, args[0], path)
    if origin is tuple:
        return tuple(convert(item, args[0], path) for item in _parse_list(value, path))
    if origin is None:
        return _parse_scalar(value, expected_type, path)
    return _parse_mapping(value, path)


def _check_range(value: Any, bounds: Range, path: str) -> Any:
    if bounds.min <= value <= bounds.max:
        return value
    upper = "" if bounds.max == math.inf else f" and at most {bounds.max}"
    raise ConfigError(f"{path} must be at least {bounds.min}{upper}, not {value}", param=path)


def _parse_list(value: Any, path: str) -> list[Any]:
    """Parse a list, or its form on a command line: "0,1"."""
    if isinstance(value, str):
        return value.split(",") if value else []
    if isinstance(value, list):
        return value
    raise ConfigError(f"{path} must be a list, not {value!r}", param=path)


def _parse_mapping(value: Any, path: str) -> Mapping[str, Any]:
    """Parse a mapping, or its form on a command line: YAML such as "{page_size: 16}"."""
    try:
        content = yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError:
        content = None
    if isinstance(content, Mapping) and all(isinstance(name, str) for name in content):
        return content
    raise ConfigError(f"{path} must be a mapping of names to values, not {value!r}", param=path)


def _parse_scalar(value: Any, expected_type: type, path: str) -> Any:
    if expected_type is bool and value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and expected_type in (int, float, Path):
        with suppress(ValueError):  # Rejected below with a message that names the option.
            return expected_type(value)
    if expected_type is float and type(value) is int:
        return float(value)
    # In Python a bool is an int, but here it is not a number.
    if isinstance(value, expected_type) and (expected_type is bool or not isinstance(value, bool)):
        return value
    type_name = expected_type.__name__
    raise ConfigError(f"{path} must be of type {type_name}, not {value!r}", param=path)


def _to_plain(value: Any) -> Any:
    if is_dataclass(value):
        return {entry.name: _to_plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value
