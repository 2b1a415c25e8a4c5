"""The configurations of a checkpoint's image folders as frozen dataclasses. No torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.config import Qwen2Config, parse_keys
from sglang_omni.models.ming.image.sizes import BUCKETS, RELEASED_RESOLUTIONS
from sglang_omni.protocol.errors import CheckpointError

HEAD, CONNECTOR, TRANSFORMER, VAE, SCHEDULER, GLYPHS = (
    "mlp",
    "connector",
    "transformer",
    "vae",
    "scheduler",
    "byt5",
)
MAPPER_TYPE = "T5EncoderBlockByT5Mapper"


@dataclass(frozen=True)
class ImageHeadConfig:
    """`mlp/config.json`: query tokens, the width of the condition rows, and what is drawn.

    The defaults are those of the released code; a file that leaves `dit_type` or `use_identity_mlp`
    out describes another model and is refused. `img_gen_resolutions`, which the released file does
    not have, are the resolution classes that the model draws.
    """

    img_gen_scales: tuple[int, ...] = (4, 8, 16)
    diffusion_c_input_dim: int = 2048
    dit_type: str = "sd3"
    use_identity_mlp: bool = False
    text_encoder_norm: bool = False
    img_gen_resolutions: tuple[int, ...] = RELEASED_RESOLUTIONS

    @property
    def scale(self) -> int:
        """Return the side of the square of query tokens."""
        return self.img_gen_scales[-1]

    @property
    def num_queries(self) -> int:
        """Return the number of query tokens."""
        return self.scale**2

    @property
    def query_tensor(self) -> str:
        """Return the name of the tensor with the query tokens' embeddings."""
        return f"query_tokens_dict.{self.scale}x{self.scale}"


@dataclass(frozen=True)
class T5Config:
    """The encoder half of a T5 configuration."""

    d_model: int
    d_kv: int
    d_ff: int
    num_heads: int
    num_layers: int
    relative_attention_num_buckets: int
    relative_attention_max_distance: int
    layer_norm_epsilon: float
    feed_forward_proj: str


@dataclass(frozen=True)
class GlyphConfig:
    """`byt5/byt5.json` and the files that it names.

    `special_tokens` follow the bytes and the reserved ids of the tokenizer.
    """

    encoder: T5Config
    mapper_layers: int
    mapper_width: int
    max_length: int
    special_tokens: tuple[str, ...]


def has_image_output(checkpoint: Path) -> bool:
    """Return whether a checkpoint has the folders that image output needs."""
    return not list_missing_files(checkpoint)


def list_missing_files(checkpoint: Path) -> list[str]:
    """Return which configurations of image output a checkpoint lacks. Glyphs are optional."""
    folders = (HEAD, CONNECTOR, TRANSFORMER, VAE)
    files = [*(f"{name}/config.json" for name in folders), f"{SCHEDULER}/scheduler_config.json"]
    return [file for file in files if not (checkpoint / file).exists()]


def read_head_config(checkpoint: Path) -> ImageHeadConfig:
    """Read `mlp/config.json`.

    Raises:
        CheckpointError: The file is missing, or describes another kind of model.
    """
    path = checkpoint / HEAD / "config.json"
    config = parse_keys(ImageHeadConfig, read_json(path), str(path))
    supported = {"dit_type": "zimage", "use_identity_mlp": True, "text_encoder_norm": True}
    for key, value in supported.items():
        if getattr(config, key) != value:
            raise CheckpointError(f"{path}: {key} must be {value!r}")
    if len(config.img_gen_scales) != 1:
        raise CheckpointError(f"{path}: img_gen_scales must have one entry")
    if not config.img_gen_resolutions or not set(config.img_gen_resolutions) <= set(BUCKETS):
        raise CheckpointError(
            f"{path}: img_gen_resolutions must be some of {', '.join(map(str, BUCKETS))}"
        )
    return config


def read_connector_config(checkpoint: Path) -> Qwen2Config:
    """Read `connector/config.json`. Raises `CheckpointError`."""
    path = checkpoint / CONNECTOR / "config.json"
    return parse_keys(Qwen2Config, read_json(path), str(path))


def read_glyph_config(checkpoint: Path) -> GlyphConfig | None:
    """Read the configuration of the glyph branch; None where a checkpoint has none.

    Raises:
        CheckpointError: A file or key is missing, or the model is of another kind.
    """
    folder = checkpoint / GLYPHS
    if not folder.is_dir():
        return None
    path = folder / "byt5.json"
    raw = read_json(path)
    try:
        byt5, mapper = raw["byt5_config"], raw["byt5_mapper_config"]
        base = folder / byt5["byt5_ckpt_path"] / "config.json"
        if raw["byt5_mapper_type"] != MAPPER_TYPE:
            raise CheckpointError(f"{path}: byt5_mapper_type must be {MAPPER_TYPE}")
        encoder = parse_keys(T5Config, read_json(base), str(base))
        if encoder.feed_forward_proj != "gated-gelu":
            raise CheckpointError(f"{base}: feed_forward_proj must be gated-gelu")
        return GlyphConfig(
            encoder,
            mapper["num_layers"],
            mapper["sdxl_channels"],
            raw["byt5_max_length"],
            _list_special_tokens(folder, byt5),
        )
    except KeyError as error:
        raise CheckpointError(f"{path}: key {error} is missing") from None


def _list_special_tokens(folder: Path, byt5: dict[str, Any]) -> tuple[str, ...]:
    """Return the colour and font tokens in the order of their ids."""
    tokens: list[str] = []
    if not byt5.get("special_token", False):
        return ()
    if byt5["color_special_token"]:
        colors = read_json(folder / byt5["color_ann_path"])
        tokens += [f"<color-{index}>" for index in range(len(colors))]
    if byt5["font_special_token"]:
        fonts = read_json(folder / byt5["font_ann_path"])
        for key, index in fonts.items():
            language = key[:3] if key[:3] in ("cn-", "en-", "jp-", "kr-") else ""
            tokens.append(f"<{language if byt5['multilingual'] else ''}font-{index}>")
    return tuple(dict.fromkeys(tokens))
