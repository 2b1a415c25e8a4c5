"""The checkpoint's JSON configurations as frozen dataclasses.

Key names are the checkpoint's own. A key that is missing is an error that names it; keys that
only matter for training are ignored. The thinker's configuration is a Hugging Face class and
lives in `hf_config.py`, because SGLang needs it in that form.
"""

import json
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from sglang_omni.errors import CheckpointError

T = TypeVar("T")


def read_json(path: Path) -> Any:
    """Parse a JSON file. Raises `CheckpointError` when it is missing or malformed."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from None


def _select(cls: type[T], values: dict[str, Any], where: str) -> T:
    """Build `cls` from the keys it declares."""
    chosen = {}
    for field in fields(cls):  # type: ignore[arg-type]
        if field.name in values:
            chosen[field.name] = values[field.name]
        elif field.default is MISSING:
            raise CheckpointError(f"{where}: key {field.name!r} is missing")
    return cls(**chosen)


@dataclass(frozen=True)
class Qwen2Config:
    """A Qwen2 transformer stack (talker backbone, VAE encoder, aggregator and decoder)."""

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
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def window(self) -> int | None:
        """Number of keys a query sees, itself included; None means all."""
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
    """`talker/config.json` together with `talker/llm/config.json`."""

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
        """Width of one audio latent."""
        return self.flow.in_channels


@dataclass(frozen=True)
class VAESideConfig:
    """Encoder or decoder of the audio VAE; `frame` is its input or output width in samples."""

    frame: int
    latent_dim: int
    backbone: Qwen2Config


@dataclass(frozen=True)
class VAEConfig:
    """`talker/vae/config.json`. `patch_size` counts frames per latent."""

    sample_rate: int
    patch_size: int
    encoder: VAESideConfig
    decoder: VAESideConfig

    @property
    def samples_per_latent(self) -> int:
        """Samples that one latent decodes to."""
        return self.patch_size * self.decoder.frame


def read_talker_config(talker: Path) -> TalkerConfig:
    """Read the two talker configurations below the folder `talker`."""
    path = talker / "config.json"
    raw = read_json(path)
    for key in ("flowmodel", "aggregator", "steps", "patch_size", "history_patch_size"):
        if key not in raw:
            raise CheckpointError(f"{path}: key {key!r} is missing")
    llm_path = talker / "llm" / "config.json"
    return TalkerConfig(
        llm=_select(Qwen2Config, read_json(llm_path), str(llm_path)),
        flow=_select(DiTConfig, raw["flowmodel"], f"{path}: flowmodel"),
        aggregator=_select(DiTConfig, raw["aggregator"], f"{path}: aggregator"),
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
                backbone=_select(Qwen2Config, side["backbone"], f"{path}: backbone"),
            )
            for side, width in ((encoder, "hop_size"), (decoder, "output_dim"))
        ]
        return VAEConfig(raw["sample_rate"], raw["patch_size"], *sides)
    except KeyError as error:
        raise CheckpointError(f"{path}: key {error} is missing") from None
