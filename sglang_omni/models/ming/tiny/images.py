"""The image folders of the tiny checkpoint: random weights for the modules that load them."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE, WEIGHTS_FILE
from sglang_omni.models.ming.config import Qwen2Config
from sglang_omni.models.ming.image.config import (
    CONNECTOR,
    GLYPHS,
    HEAD,
    SCHEDULER,
    TRANSFORMER,
    VAE,
    read_connector_config,
    read_glyph_config,
    read_head_config,
)
from sglang_omni.models.ming.image.connector import Connector
from sglang_omni.models.ming.image.glyphs import GlyphEncoder, GlyphMapper
from sglang_omni.models.ming.tiny import image_configs
from sglang_omni.models.ming.tiny.draw import Shapes, WeightSampler, sample_tensors
from sglang_omni.models.ming.tiny.files import write_json, write_tensors

_BACKBONE = "model."


def write_image_folders(folder: Path, sampler: WeightSampler, thinker_width: int) -> None:
    """Write every image folder; weights are sampled for the configurations as read."""
    _write_connector(folder, sampler, thinker_width)
    _write_diffusers(folder, sampler)
    _write_glyphs(folder, sampler)


def _write_connector(folder: Path, sampler: WeightSampler, thinker_width: int) -> None:
    """Write `mlp/`, with the query tokens and both projections, and `connector/`."""
    _make_folder(folder / HEAD, image_configs.build_head_config())
    _make_folder(folder / CONNECTOR, image_configs.build_connector_config())
    head, config = read_head_config(folder), read_connector_config(folder)
    shapes = _list_shapes(lambda: Connector(head, config, thinker_width))
    layers = {name for name in shapes if name.startswith(_BACKBONE)}
    projections = {name: shapes[name] for name in shapes if name not in layers}
    projections[head.query_tensor] = (head.num_queries, thinker_width)
    tensors = _sample(sampler, HEAD, projections)
    # As embeddings, the query tokens have unit scale.
    tensors[head.query_tensor] *= thinker_width**0.5
    write_tensors(folder / HEAD / WEIGHTS_FILE, tensors)
    backbone = {name: shapes[name] for name in layers} | _list_unused_shapes(config)
    write_tensors(folder / CONNECTOR / WEIGHTS_FILE, _sample(sampler, CONNECTOR, backbone))


def _list_unused_shapes(config: Qwen2Config) -> dict[str, tuple[int, ...]]:
    """Return the table of token embeddings, which the released file stores as well."""
    return {f"{_BACKBONE}embed_tokens.weight": (image_configs.VOCABULARY, config.hidden_size)}


def _write_diffusers(folder: Path, sampler: WeightSampler) -> None:
    """Write `transformer/`, `vae/` and `scheduler/`."""
    from diffusers import AutoencoderKL, ZImageTransformer2DModel

    transformer = image_configs.build_transformer_config()
    _write_diffusers_model(folder / TRANSFORMER, sampler, ZImageTransformer2DModel, transformer)
    vae = image_configs.build_image_vae_config()
    _write_diffusers_model(folder / VAE, sampler, AutoencoderKL, vae)
    (folder / SCHEDULER).mkdir()
    scheduler = image_configs.build_scheduler_config()
    write_json(folder / SCHEDULER / "scheduler_config.json", scheduler)


def _write_diffusers_model(
    folder: Path, sampler: WeightSampler, cls: Any, config: dict[str, Any]
) -> None:
    _make_folder(folder, config)
    shapes = _list_shapes(lambda: cls.from_config(config))
    write_tensors(folder / DIFFUSERS_WEIGHTS_FILE, _sample(sampler, folder.name, shapes))


def _write_glyphs(folder: Path, sampler: WeightSampler) -> None:
    """Write `byt5/`, without the weights of its base model, which are not used."""
    glyphs = folder / GLYPHS
    _make_folder(glyphs / image_configs.GLYPH_BASE, image_configs.build_glyph_base_config())
    for file, content in image_configs.build_glyph_files().items():
        write_json(glyphs / file, content)
    config = read_glyph_config(folder)
    assert config is not None
    _write_pt(glyphs, "byt5_model", sampler, lambda: GlyphEncoder(config))
    _write_pt(glyphs, "byt5_mapper", sampler, lambda: GlyphMapper(config))


def _write_pt(
    folder: Path, name: str, sampler: WeightSampler, build: Callable[[], nn.Module]
) -> None:
    """Write a module's tensors in PyTorch's format."""
    tensors = _sample(sampler, name, _list_shapes(build))
    # Saved in memory, because the name of a file would become part of its content.
    buffer = io.BytesIO()
    torch.save({key: tensor.bfloat16() for key, tensor in tensors.items()}, buffer)
    (folder / name).mkdir()
    (folder / name / f"{name}.pt").write_bytes(buffer.getvalue())


def _make_folder(folder: Path, config: dict[str, Any]) -> None:
    """Make a folder with its `config.json`."""
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)


def _list_shapes(build: Callable[[], nn.Module]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of a module, which takes no memory."""
    with torch.device("meta"):
        return {name: tuple(tensor.shape) for name, tensor in build().state_dict().items()}


def _sample(sampler: WeightSampler, part: str, shapes: Shapes) -> dict[str, Tensor]:
    """Sample the tensors of a part; equal names in two parts have different numbers."""
    named = sample_tensors(sampler, {f"{part}/{name}": shape for name, shape in shapes.items()})
    return {name.removeprefix(f"{part}/"): tensor for name, tensor in named.items()}
