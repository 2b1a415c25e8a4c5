"""The JSON configurations of a checkpoint as frozen dataclasses.

Fields have the key names of the checkpoint. A missing key is an error that names it; keys that
only matter for training are ignored. The thinker's configuration is a Hugging Face class in
`thinker/hf_config.py`, because SGLang needs that form.
"""

import math
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

T = TypeVar("T")

VISION_ACTIVATION = "gelu_pytorch_tanh"
AUDIO_KERNEL = 3


def parse_keys(cls: type[T], values: dict[str, Any], source: str) -> T:
    """Build `cls` from the keys that it declares; errors name the `source`."""
    values_by_name = {}
    for field in fields(cls):  # type: ignore[arg-type]
        if field.name in values:
            values_by_name[field.name] = values[field.name]
        elif field.default is MISSING:
            raise CheckpointError(f"{source}: key {field.name!r} is missing")
    return cls(**values_by_name)


@dataclass(frozen=True)
class Qwen2Config:
    """A Qwen2 transformer stack (talker backbone, VAE encoder, aggregator or decoder)."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    rms_norm_eps: float
    rope_theta: float
    vocab_size: int
    use_sliding_window: bool = False
    sliding_window: int | None = None

    @property
    def head_dim(self) -> int:
        """Return the width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def window(self) -> int | None:
        """Return how many keys a query attends to, itself included; None means all."""
        return self.sliding_window if self.use_sliding_window else None


@dataclass(frozen=True)
class DiTConfig:
    """A stack of DiT blocks (flow model or aggregator)."""

    in_channels: int
    hidden_size: int
    depth: int
    num_heads: int
    mlp_ratio: int


@dataclass(frozen=True)
class TalkerConfig:
    """`talker/config.json` and `talker/llm/config.json`."""

    llm: Qwen2Config
    flow: DiTConfig
    aggregator: DiTConfig
    steps: int
    patch_size: int
    history_patch_size: int
    cfg_strength: float
    speaker_dim: int = 192

    @property
    def latent_dim(self) -> int:
        """Return the width of one audio latent."""
        return self.flow.in_channels


@dataclass(frozen=True)
class VAESideConfig:
    """Encoder or decoder of the audio VAE; `frame` is its input or output width in samples."""

    frame: int
    latent_dim: int
    backbone: Qwen2Config


@dataclass(frozen=True)
class VAEConfig:
    """`talker/vae/config.json`. `patch_size` is the number of frames per latent."""

    sample_rate: int
    patch_size: int
    encoder: VAESideConfig
    decoder: VAESideConfig

    @property
    def samples_per_latent(self) -> int:
        """Return the number of samples that one latent decodes to."""
        return self.patch_size * self.decoder.frame


@dataclass(frozen=True)
class VisionConfig:
    """`vision_config` of `config.json`: the vision transformer and its merger."""

    depth: int
    hidden_size: int
    num_heads: int
    intermediate_size: int
    in_channels: int
    patch_size: int
    temporal_patch_size: int
    spatial_merge_size: int
    out_hidden_size: int
    num_position_embeddings: int
    deepstack_visual_indexes: tuple[int, ...]

    @property
    def head_dim(self) -> int:
        """Return the width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def patch_width(self) -> int:
        """Return the size of one flattened patch (channel, time, y, x)."""
        return self.in_channels * self.temporal_patch_size * self.patch_size**2

    @property
    def merged_size(self) -> int:
        """Return the width of the concatenated patches of one token."""
        return self.hidden_size * self.spatial_merge_size**2

    @property
    def position_side(self) -> int:
        """Return the side of the square grid of learned positions."""
        return math.isqrt(self.num_position_embeddings)


@dataclass(frozen=True)
class AudioEncoderConfig:
    """`audio_config` of `config.json`: the audio tower and its convolutional projector."""

    n_ctx: int
    n_head: int
    n_layer: int
    n_mels: int
    n_state: int
    ds_kernel_size: int
    ds_stride: int

    @property
    def head_dim(self) -> int:
        """Return the width of one attention head."""
        return self.n_state // self.n_head


@dataclass(frozen=True)
class EncoderConfig:
    """Both encoders; `hidden_size` is the width of a feature row, that of the thinker."""

    vision: VisionConfig
    audio: AudioEncoderConfig
    hidden_size: int


def read_encoder_config(checkpoint: Path) -> EncoderConfig:
    """Read `config.json` of a checkpoint; raise `CheckpointError` for a missing key."""
    path = checkpoint / "config.json"
    return parse_encoder_config(read_json(path), str(path))


def parse_encoder_config(values: dict[str, Any], source: str) -> EncoderConfig:
    """Parse the keys of both encoders from the `values` of `config.json`.

    Error messages begin with `source`, the path of the file.

    Raises:
        CheckpointError: A key is missing or has an unsupported value.
    """
    try:
        vision, audio, llm = (values[f"{part}_config"] for part in ("vision", "audio", "llm"))
        whisper = audio["whisper_encoder_config"]
        hidden_size = llm["hidden_size"]
    except KeyError as error:
        raise CheckpointError(f"{source}: key {error} is missing") from None
    if vision.get("hidden_act") != VISION_ACTIVATION:
        raise CheckpointError(f"{source}: vision_config.hidden_act must be {VISION_ACTIVATION}")
    if audio.get("ds_kernel_size") != AUDIO_KERNEL:
        raise CheckpointError(f"{source}: audio_config.ds_kernel_size must be {AUDIO_KERNEL}")
    vision_config = parse_keys(VisionConfig, vision, f"{source}: vision_config")
    indexes = tuple(vision_config.deepstack_visual_indexes)
    return EncoderConfig(
        vision=replace(vision_config, deepstack_visual_indexes=indexes),
        audio=parse_keys(AudioEncoderConfig, audio | whisper, f"{source}: audio_config"),
        hidden_size=hidden_size,
    )


def read_talker_config(talker: Path) -> TalkerConfig:
    """Read the two talker configurations below the folder `talker`."""
    path = talker / "config.json"
    raw = read_json(path)
    for key in ("flowmodel", "aggregator", "steps", "patch_size", "history_patch_size"):
        if key not in raw:
            raise CheckpointError(f"{path}: key {key!r} is missing")
    llm_path = talker / "llm" / "config.json"
    return TalkerConfig(
        llm=parse_keys(Qwen2Config, read_json(llm_path), str(llm_path)),
        flow=parse_keys(DiTConfig, raw["flowmodel"], f"{path}: flowmodel"),
        aggregator=parse_keys(DiTConfig, raw["aggregator"], f"{path}: aggregator"),
        steps=raw["steps"],
        patch_size=raw["patch_size"],
        history_patch_size=raw["history_patch_size"],
        cfg_strength=raw.get("cfg_strength", 2.0),
    )


def read_vae_config(vae: Path) -> VAEConfig:
    """Read `config.json` of the audio VAE folder `vae`."""
    path = vae / "config.json"
    raw = read_json(path)
    try:
        encoder, decoder = raw["enc_kwargs"], raw["dec_kwargs"]
        sides = [
            VAESideConfig(
                frame=side[width],
                latent_dim=side["latent_dim"],
                backbone=parse_keys(Qwen2Config, side["backbone"], f"{path}: backbone"),
            )
            for side, width in ((encoder, "hop_size"), (decoder, "output_dim"))
        ]
        return VAEConfig(raw["sample_rate"], raw["patch_size"], *sides)
    except KeyError as error:
        raise CheckpointError(f"{path}: key {error} is missing") from None
