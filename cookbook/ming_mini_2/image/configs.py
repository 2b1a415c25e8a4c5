"""Sizes of the image folders, as the configuration files of the released layout.

What the layout fixes comes from the tiny checkpoint's files; only widths and depths differ.
"""

from dataclasses import dataclass
from typing import Any

from sglang_omni.models.ming.tiny import image_configs as tiny

Json = dict[str, Any]
RESOLUTION = 256


@dataclass(frozen=True)
class ImageSizes:
    """The differences from the tiny checkpoint's configurations, for each folder."""

    head: Json
    connector: Json
    transformer: Json
    vae: Json


MINI = ImageSizes(
    head={"img_gen_scales": [8], "diffusion_c_input_dim": 128},
    connector={
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
    },
    # Every block has a modulation of a quarter of its size, and the embedding of time 0.4 million
    # parameters, so depth costs less than width.
    transformer={
        "dim": 144,
        "n_heads": 3,
        "n_kv_heads": 3,
        "n_layers": 6,
        "n_refiner_layers": 1,
        "axes_dims": [16, 16, 16],
        "cap_feat_dim": 128,
    },
    vae={
        "block_out_channels": [16, 24, 32, 48],
        "layers_per_block": 1,
        "mid_block_add_attention": False,
        "norm_num_groups": 8,
        "sample_size": RESOLUTION,
    },
)
"""About 3.9 million parameters, which `cookbook.ming_mini_2.image.layout --count` lists."""

SMALL = ImageSizes(
    head={"img_gen_scales": [2], "diffusion_c_input_dim": 32},
    connector={"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1},
    # A width above the 64 numbers of a patch, whose noise must pass.
    transformer={"n_layers": 1, "n_refiner_layers": 1, "cap_feat_dim": 32},
    vae={
        "block_out_channels": [8, 8, 8, 16],
        "layers_per_block": 1,
        "mid_block_add_attention": False,
        "norm_num_groups": 4,
        "sample_size": RESOLUTION,
    },
)
"""Sizes to try the recipe on a CPU."""

SIZES = {"mini_2": MINI, "small": SMALL}


@dataclass(frozen=True)
class LatentScale:
    """What brings latents to mean 0 and deviation 1: `(x - shift) * scaling`."""

    scaling: float = 1.0
    shift: float = 0.0


UNSCALED = LatentScale()
"""Of a VAE that is not trained yet."""


def num_queries(sizes: ImageSizes) -> int:
    """Return the number of query tokens."""
    (scale,) = sizes.head["img_gen_scales"]
    return int(scale) ** 2


def head_config(sizes: ImageSizes) -> Json:
    """Return `mlp/config.json`."""
    return tiny.build_head_config() | sizes.head | {"img_gen_resolutions": [RESOLUTION]}


def connector_config(sizes: ImageSizes) -> Json:
    """Return `connector/config.json`."""
    return tiny.build_connector_config() | sizes.connector


def transformer_config(sizes: ImageSizes) -> Json:
    """Return `transformer/config.json`."""
    return tiny.build_transformer_config() | sizes.transformer


def vae_config(sizes: ImageSizes, scale: LatentScale = UNSCALED) -> Json:
    """Return `vae/config.json`; the scale of the latents is known once the VAE is trained."""
    constants = {"scaling_factor": scale.scaling, "shift_factor": scale.shift}
    return tiny.build_image_vae_config() | sizes.vae | constants
