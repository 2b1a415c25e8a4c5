"""Defines the server's configuration: one tree of options, a section for each subject."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.admission_options import AdmissionOptions
from sglang_omni.config.autoscaling_options import AutoscalingOptions
from sglang_omni.config.cluster_options import ClusterOptions
from sglang_omni.config.engine_options import (
    AudioEncoderOptions,
    ImageEncoderOptions,
    TalkerOptions,
    ThinkerOptions,
)
from sglang_omni.config.http_options import HttpOptions
from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.media_options import MediaOptions
from sglang_omni.config.option_types import (
    OPTION_CONFIG,
    Count,
    Device,
    DType,
    Flag,
    Integer,
    LocalPath,
    Number,
    Placement,
    Port,
    Seconds,
    ServeOnly,
    Text,
    Texts,
)
from sglang_omni.config.rate_limit_options import RateLimitOptions
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.config.segment_options import SegmentOptions
from sglang_omni.config.shared_store_options import SharedStoreOptions
from sglang_omni.config.text_options import TextOptions
from sglang_omni.config.voice_options import VoiceOptions


@dataclass(frozen=True, config=OPTION_CONFIG)
class Config:
    """Options of `sgl-omni serve`."""

    model_path: LocalPath | None = None
    """Folder of the checkpoint; unset: Ming-mini, which is part of the package."""

    served_model_name: Texts = ("ming-omni",)
    """Names of the model in requests; answers to requests that name none have the first."""

    model_alias: Texts = ()
    """ALIAS=NAME gives a served name a second name, for clients with fixed model names."""

    strict_names: Flag = False
    """Reject OpenAI's names of models and voices unless this server gives them itself."""

    strict_fields: ServeOnly[Flag] = False
    """Reject requests with fields that would be ignored."""

    host: ServeOnly[Text] = "127.0.0.1"
    """Address to listen on."""

    port: ServeOnly[Port] = 8000
    """TCP port to listen on; 0 takes a free one."""

    device: Device = "auto"
    """Device of the engines; auto: the GPUs if there are any, else the CPU."""

    dtype: DType = "auto"
    """Type of the weights; auto: bfloat16 on a GPU, float32 on a CPU."""

    placement: Placement = "manual"
    """GPUs of engines that have none set: auto plans by memory sizes over the machines of a
    cluster, manual takes this one's first."""

    voice: Text | None = None
    """Preset voice of requests that name none; unset: the checkpoint's first."""

    voice_alias: Texts = ()
    """ALIAS=PRESET gives a preset a second name, for clients with fixed voice names."""

    voices_dir: LocalPath | None = None
    """Folder of the voices that users store; unset: voices cannot be stored."""

    max_tokens: Count = 2048
    """Maximum length of an answer in tokens."""

    max_body_bytes: ServeOnly[Count] = 96 << 20
    """Maximum size of a request's body, checked before it is parsed."""

    drain_timeout: ServeOnly[Seconds] = 30.0
    """Seconds that running requests have at a shutdown; new ones are rejected."""

    shutdown_delay: ServeOnly[Seconds] = 0.0
    """Seconds at a shutdown in which requests are still accepted while /ready says 503, so that
    proxies notice."""

    request_timeout: Annotated[Number, Field(ge=1)] = 600.0
    """Maximum duration of a request in seconds, whatever its own timeout."""

    unread_bytes: ServeOnly[Annotated[Integer, Field(ge=65_536)]] = 2 << 20
    """Maximum bytes of an answer to buffer for a slow client."""

    unread_timeout: ServeOnly[Annotated[Number, Field(ge=1)]] = 30.0
    """Seconds without reading after which a client is disconnected."""

    api_key: ServeOnly[Texts] = ()
    """Sources of API keys, each file:PATH or env:NAME; unset: no key is required."""

    admin_api_key: ServeOnly[Texts] = ()
    """Sources of administrators' keys, as for api_key; unset: the admin routes are closed."""

    cors_origin: ServeOnly[Texts] = ()
    """Origins of web pages of other sites that may use the server."""

    allowed_host: ServeOnly[Texts] = ()
    """Names that the Host header may have besides local ones (*: any); unset: it is checked only
    on a loopback address without keys."""

    tls_certificate: ServeOnly[LocalPath | None] = None
    """Certificate for TLS, with tls_key; unset: no TLS."""

    tls_key: ServeOnly[LocalPath | None] = None
    """Private key of tls_certificate; unset: no TLS."""

    tls_client_ca: ServeOnly[LocalPath | None] = None
    """Authority that must have signed a client's certificate; unset: clients need none."""

    text_only: Flag = False
    """Start no encoders and reject media."""

    allowed_media_domain: Texts = ()
    """Hosts that media may be downloaded from; unset: any public host."""

    allowed_local_media_path: LocalPath | None = None
    """Folder that local media may be read from; unset: none."""

    log_level: ServeOnly[Literal["debug", "info", "warning", "error"]] = "info"
    """Lowest level of the log; debug also shows the engines' output."""

    log_format: ServeOnly[Literal["text", "json"]] = "text"
    """Format of the lines of the log."""

    # Its files have a bounded size.
    log_folder: LocalPath | None = None
    """Folder of the engines' output; unset: one for this port in $XDG_STATE_HOME/sglang-omni."""

    # At most 20 lines a second, without content of requests.
    audit_log: ServeOnly[LocalPath | None] = None
    """File for rejected requests, a line of JSON each; unset: the log, at level info."""

    verbose: Flag = False
    """Show the engines' output on the terminal as well."""

    otlp_endpoint: ServeOnly[Text | None] = None
    """URL that traces are sent to, by OTLP over HTTP; unset: none are sent."""

    profile_folder: ServeOnly[LocalPath | None] = None
    """Folder of the engines' profiles; unset: engines cannot be profiled."""

    http: ServeOnly[HttpOptions] = field(default_factory=HttpOptions)
    rate_limit: ServeOnly[RateLimitOptions] = field(default_factory=RateLimitOptions)
    shared_store: ServeOnly[SharedStoreOptions] = field(default_factory=SharedStoreOptions)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    media: MediaOptions = field(default_factory=MediaOptions)
    image_encoder: ImageEncoderOptions = field(default_factory=ImageEncoderOptions)
    audio_encoder: AudioEncoderOptions = field(default_factory=AudioEncoderOptions)
    thinker: ThinkerOptions = field(default_factory=ThinkerOptions)
    talker: TalkerOptions = field(default_factory=TalkerOptions)
    image: ImageOptions = field(default_factory=ImageOptions)
    autoscaling: AutoscalingOptions = field(default_factory=AutoscalingOptions)
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    realtime: ServeOnly[RealtimeOptions] = field(default_factory=RealtimeOptions)
    voices: VoiceOptions = field(default_factory=VoiceOptions)
    segment: SegmentOptions = field(default_factory=SegmentOptions)
    text: TextOptions = field(default_factory=TextOptions)
