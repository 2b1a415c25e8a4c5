"""Load the image folders of a checkpoint, strictly; errors name the tensor or the key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.image.config import (
    CONNECTOR,
    GLYPHS,
    HEAD,
    TRANSFORMER,
    VAE,
    read_connector_config,
    read_glyph_config,
    read_head_config,
)
from sglang_omni.models.ming.image.connector import Connector
from sglang_omni.models.ming.image.fp8 import build_fp8_transformer
from sglang_omni.models.ming.image.fp8_layout import is_row_fp8
from sglang_omni.models.ming.image.glyphs import (
    GlyphBranch,
    GlyphEncoder,
    GlyphMapper,
    GlyphTokenizer,
)
from sglang_omni.models.ming.image.pixels import ImageVAE
from sglang_omni.models.ming.image.schedule import read_scheduler_config
from sglang_omni.models.weights import TensorFolder, load_strict, use_device_and_dtype
from sglang_omni.protocol.errors import CheckpointError
from sglang_omni.system.progress import report_progress

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class ImageModules:
    """The loaded modules. `glyphs` is None where the checkpoint has no glyph branch.

    `query_rows` [queries, hidden] are the embeddings of the query tokens. `resolutions` are the
    classes of sizes that the model draws.
    """

    query_rows: Tensor
    connector: Connector
    glyphs: GlyphBranch | None
    transformer: Any
    vae: ImageVAE
    scheduler: Mapping[str, Any]
    resolutions: tuple[int, ...]


def load_image_modules(checkpoint: Path, device: torch.device, dtype: torch.dtype) -> ImageModules:
    """Load every image folder of a checkpoint. Raises `CheckpointError`."""
    from diffusers import AutoencoderKL

    report_progress("loading the connector")
    query_rows, connector = load_connector(checkpoint, device, dtype)
    glyphs = load_glyphs(checkpoint, device, dtype)
    report_progress("loading the diffusion transformer")
    transformer = _load_transformer(checkpoint / TRANSFORMER, device, dtype)
    vae = _load_diffusers(AutoencoderKL, checkpoint / VAE, device, dtype)
    return ImageModules(
        query_rows,
        connector,
        glyphs,
        transformer,
        ImageVAE(vae),
        read_scheduler_config(checkpoint),
        tuple(read_head_config(checkpoint).img_gen_resolutions),
    )


def load_connector(
    checkpoint: Path, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Connector]:
    """Return the embeddings of the query tokens, and the connector."""
    head, config = read_head_config(checkpoint), read_connector_config(checkpoint)
    width = read_encoder_config(checkpoint).hidden_size
    connector = _build(lambda: Connector(head, config, width), device, dtype)
    # Rotary frequencies stay in float32, whatever the dtype of the weights.
    tensors = TensorFolder(checkpoint / HEAD)
    projections = {name: tensors[name] for name in tensors if name != head.query_tensor}
    backbone = TensorFolder(checkpoint / CONNECTOR)
    unused = ("lm_head.weight", "model.embed_tokens.weight")
    layers = {name: backbone[name] for name in backbone if name not in unused}
    load_strict(connector, projections | layers)
    queries = tensors[head.query_tensor]
    if tuple(queries.shape) != (head.num_queries, width):
        raise CheckpointError(
            f"tensor {head.query_tensor!r} has shape {list(queries.shape)}; "
            f"expected {[head.num_queries, width]}"
        )
    return queries, connector


def load_glyphs(checkpoint: Path, device: torch.device, dtype: torch.dtype) -> GlyphBranch | None:
    """Return the glyph branch; None where the checkpoint has none."""
    config = read_glyph_config(checkpoint)
    if config is None:
        return None
    folder = checkpoint / GLYPHS
    encoder = _build(lambda: GlyphEncoder(config), device, dtype)
    # `base.pt` beside it holds the weights before the last training; they are not used.
    tensors = _load_pt(folder / "byt5_model" / "byt5_model.pt")
    load_strict(encoder, tensors, ignore=lambda name: name == "shared.weight")
    mapper = _build(lambda: GlyphMapper(config), device, dtype)
    load_strict(mapper, _load_pt(folder / "byt5_mapper" / "byt5_mapper.pt"))
    tokenizer = GlyphTokenizer(config.special_tokens, config.max_length)
    return GlyphBranch(tokenizer, encoder, mapper)


def _build(construct: Callable[[], M], device: torch.device, dtype: torch.dtype) -> M:
    with use_device_and_dtype(device, dtype):
        return construct().requires_grad_(False).eval()


def _load_pt(path: Path) -> dict[str, Tensor]:
    if not path.exists():
        raise CheckpointError(f"{path} is missing")
    tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return tensors


def _load_transformer(folder: Path, device: torch.device, dtype: torch.dtype) -> Any:
    """Load the diffusion transformer; a checkpoint in FP8 keeps its matrices in FP8."""
    from diffusers import ZImageTransformer2DModel

    values = _read_diffusers_config(ZImageTransformer2DModel, folder)
    if not is_row_fp8(values):
        return _load_diffusers(ZImageTransformer2DModel, folder, device, dtype)
    module = build_fp8_transformer(ZImageTransformer2DModel, values, device, dtype)
    load_strict(module, TensorFolder(folder, DIFFUSERS_WEIGHTS_FILE))
    return module


def _load_diffusers(cls: Any, folder: Path, device: torch.device, dtype: torch.dtype) -> Any:
    """Build a class of diffusers from the configuration in a folder, and load its weights."""
    values = _read_diffusers_config(cls, folder)
    module = _build(lambda: cls.from_config(values), device, dtype)
    load_strict(module, TensorFolder(folder, DIFFUSERS_WEIGHTS_FILE))
    return module


def _read_diffusers_config(cls: Any, folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = read_json(folder / "config.json")
    if values.get("_class_name") != cls.__name__:
        raise CheckpointError(f"{folder / 'config.json'}: _class_name must be {cls.__name__}")
    return values
