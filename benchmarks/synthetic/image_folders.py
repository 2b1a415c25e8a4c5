"""Write the image folders of a checkpoint with random weights, at any shapes."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.images.shapes import ImageShapes, random_modules
from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE, WEIGHTS_FILE
from sglang_omni.models.ming.image.config import (
    CONNECTOR,
    GLYPHS,
    HEAD,
    SCHEDULER,
    TRANSFORMER,
    VAE,
)
from sglang_omni.models.ming.tiny import image_configs
from sglang_omni.models.ming.tiny.files import write_json, write_tensors

# The connector's layers are in one folder, its projections in another.
_LAYERS = "model."


def remove_image_folders(folder: Path) -> None:
    """Remove the image folders, so that the checkpoint draws nothing."""
    for name in (HEAD, CONNECTOR, TRANSFORMER, VAE, SCHEDULER, GLYPHS):
        shutil.rmtree(folder / name, ignore_errors=True)


def write_image_folders(folder: Path, shapes: ImageShapes, device: torch.device) -> None:
    """Write modules of these shapes, in bfloat16, without a glyph branch.

    Prompts that quote text are drawn without it.
    """
    remove_image_folders(folder)
    modules = random_modules(shapes, device, torch.bfloat16)
    projections, layers = _split_connector(modules.connector)
    queries = torch.Generator().manual_seed(0)
    # As embeddings, the query tokens have unit scale.
    rows = torch.randn(shapes.head.num_queries, shapes.thinker_width, generator=queries)
    projections[shapes.head.query_tensor] = rows
    connector = image_configs.build_connector_config() | asdict(shapes.connector)
    transformer = image_configs.build_transformer_config() | shapes.transformer
    vae = image_configs.build_image_vae_config() | shapes.vae
    _write_module(folder / HEAD, asdict(shapes.head), WEIGHTS_FILE, projections)
    _write_module(folder / CONNECTOR, connector, WEIGHTS_FILE, layers)
    for name, config, module in (
        (TRANSFORMER, transformer, modules.transformer),
        (VAE, vae, modules.vae),
    ):
        _write_module(folder / name, config, DIFFUSERS_WEIGHTS_FILE, module.state_dict())
    (folder / SCHEDULER).mkdir()
    scheduler = image_configs.build_scheduler_config()
    write_json(folder / SCHEDULER / "scheduler_config.json", scheduler)


def _split_connector(connector: nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the projections and the layers."""
    tensors: dict[str, Tensor] = dict(connector.named_parameters())
    layers = {name: tensor for name, tensor in tensors.items() if name.startswith(_LAYERS)}
    return {name: tensors[name] for name in tensors if name not in layers}, layers


def _write_module(
    folder: Path, config: dict[str, Any], file: str, tensors: dict[str, Tensor]
) -> None:
    folder.mkdir()
    write_json(folder / "config.json", config)
    write_tensors(folder / file, {name: tensor.detach().cpu() for name, tensor in tensors.items()})
