"""The sizes of Ming-mini's thinking half, as the configuration files of the released layout.

Everything that the layout fixes (head width, rotary frequencies, patches, mel bins) comes from the
tiny checkpoint's files; only widths and depths differ.
"""

from dataclasses import dataclass, field
from typing import Any

from tokenizers import Tokenizer

from sglang_omni.models.ming.tiny import configs as tiny
from sglang_omni.models.ming.tiny.configs import Json


@dataclass(frozen=True)
class Sizes:
    """The differences from the tiny checkpoint's configuration.

    They are in `llm_config`, in `vision_config` and in the audio tower's.
    """

    llm: dict[str, Any] = field(default_factory=dict)
    vision: dict[str, Any] = field(default_factory=dict)
    audio: dict[str, Any] = field(default_factory=dict)


MINI = Sizes(
    llm={
        "hidden_size": 256,
        "num_hidden_layers": 6,
        "intermediate_size": 768,
        # SGLang's routing kernels on a GPU need a power of two.
        "num_experts": 16,
        "moe_intermediate_size": 48,
        "n_group": 8,
        "topk_group": 4,
    },
    # No deepstack: the released model computes those outputs and drops them.
    vision={
        "hidden_size": 192,
        "depth": 5,
        "num_heads": 4,
        "intermediate_size": 512,
        "out_hidden_size": 256,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [],
    },
    # 26 seconds of audio: the longest with which the whole model fits into 48 MB.
    audio={"n_ctx": 1300, "n_state": 192, "n_head": 4, "n_layer": 4},
)
"""Ming-mini. Two tensor-parallel ranks divide its heads, experts' widths and vocabulary."""

SMALL = Sizes(
    llm={
        "hidden_size": 128,
        "num_hidden_layers": 3,
        "intermediate_size": 256,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "n_group": 4,
        "topk_group": 2,
    },
    vision={
        "hidden_size": 96,
        "depth": 2,
        "num_heads": 4,
        "intermediate_size": 192,
        "deepstack_visual_indexes": [],
    },
    audio={"n_state": 96, "n_head": 4, "n_layer": 2},
)
"""Sizes to try the recipe on a CPU."""

SIZES = {"mini": MINI, "small": SMALL}


def main_config(tokenizer: Tokenizer, sizes: Sizes = MINI) -> Json:
    """Return `config.json`."""
    config = tiny.build_main_config(tokenizer)
    config["llm_config"] |= sizes.llm
    config["vision_config"] |= sizes.vision
    config["audio_config"]["whisper_encoder_config"] |= sizes.audio
    return config
