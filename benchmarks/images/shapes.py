"""The image model at the released shapes, with random weights that keep activations bounded."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks.encoders.shapes import randomise_weights
from sglang_omni.models.ming.config import Qwen2Config
from sglang_omni.models.ming.image.config import GlyphConfig, ImageHeadConfig, T5Config
from sglang_omni.models.ming.image.connector import Connector
from sglang_omni.models.ming.image.glyphs import (
    GlyphBranch,
    GlyphEncoder,
    GlyphMapper,
    GlyphTokenizer,
)
from sglang_omni.models.ming.image.loading import ImageModules
from sglang_omni.models.ming.image.pixels import ImageVAE
from sglang_omni.models.weights import use_device_and_dtype

SCHEDULER = {
    "_class_name": "FlowMatchEulerDiscreteScheduler",
    "num_train_timesteps": 1000,
    "shift": 3.0,
    "use_dynamic_shifting": False,
}
_VAE_BLOCKS = {
    "down_block_types": ["DownEncoderBlock2D"] * 4,
    "up_block_types": ["UpDecoderBlock2D"] * 4,
    "layers_per_block": 2,
    "latent_channels": 16,
    "scaling_factor": 0.3611,
    "shift_factor": 0.1159,
    "use_quant_conv": False,
    "use_post_quant_conv": False,
}


@dataclass(frozen=True)
class ImageShapes:
    """Configurations of the modules. `thinker_width` is the width of the thinker's states."""

    thinker_width: int
    head: ImageHeadConfig
    connector: Qwen2Config
    glyphs: GlyphConfig
    transformer: dict[str, Any]
    vae: dict[str, Any]


REAL = ImageShapes(
    4096,
    ImageHeadConfig((16,), 2560, "zimage", True, True),
    # The width and depth are known; the rest is assumed to be that of Qwen2-1.5B.
    Qwen2Config(1536, 8960, 28, 12, 2, 1e-6, 1e6, 151_936),
    GlyphConfig(T5Config(1472, 64, 3584, 6, 12, 32, 128, 1e-6, "gated-gelu"), 4, 2560, 256, ()),
    {
        "dim": 3840,
        "n_layers": 30,
        "n_refiner_layers": 2,
        "n_heads": 30,
        "n_kv_heads": 30,
        "cap_feat_dim": 2560,
        "axes_dims": [32, 48, 48],
        "axes_lens": [1536, 512, 512],
    },
    {**_VAE_BLOCKS, "block_out_channels": [128, 256, 512, 512], "norm_num_groups": 32},
)
# Shapes that any machine can run, to try the benchmark.
SMALL = ImageShapes(
    64,
    ImageHeadConfig((4,), 40, "zimage", True, True),
    Qwen2Config(64, 96, 2, 4, 2, 1e-6, 1e6, 32),
    GlyphConfig(T5Config(32, 8, 48, 4, 2, 32, 128, 1e-6, "gated-gelu"), 1, 40, 48, ()),
    {
        "dim": 96,
        "n_layers": 2,
        "n_refiner_layers": 1,
        "n_heads": 3,
        "n_kv_heads": 3,
        "cap_feat_dim": 40,
        "axes_dims": [8, 12, 12],
        "axes_lens": [1536, 512, 512],
    },
    {**_VAE_BLOCKS, "block_out_channels": [8, 16, 16, 16], "norm_num_groups": 4},
)


@dataclass(frozen=True)
class RandomModules:
    """The modules that the image folders hold, with random weights."""

    connector: Connector
    glyph_encoder: GlyphEncoder
    glyph_mapper: GlyphMapper
    transformer: nn.Module
    vae: nn.Module


def random_modules(shapes: ImageShapes, device: torch.device, dtype: torch.dtype) -> RandomModules:
    """Build modules of these shapes; the weights are the same ones every time."""
    from diffusers import AutoencoderKL, ZImageTransformer2DModel

    with use_device_and_dtype(device, dtype):
        transformer: Any = ZImageTransformer2DModel
        vae: Any = AutoencoderKL
        modules = RandomModules(
            Connector(shapes.head, shapes.connector, shapes.thinker_width),
            GlyphEncoder(shapes.glyphs),
            GlyphMapper(shapes.glyphs),
            transformer.from_config(shapes.transformer),
            vae.from_config(shapes.vae),
        )
    for module in vars(modules).values():
        randomise_weights(module)
        module.eval().requires_grad_(False)
    return modules


def random_image_modules(
    shapes: ImageShapes, device: torch.device, dtype: torch.dtype
) -> ImageModules:
    """Build the modules as the loader of a checkpoint returns them."""
    modules = random_modules(shapes, device, dtype)
    tokenizer = GlyphTokenizer((), shapes.glyphs.max_length)
    return ImageModules(
        torch.zeros(shapes.head.num_queries, shapes.thinker_width, dtype=dtype),
        modules.connector,
        GlyphBranch(tokenizer, modules.glyph_encoder, modules.glyph_mapper),
        modules.transformer,
        ImageVAE(modules.vae),
        SCHEDULER,
        shapes.head.img_gen_resolutions,
    )
