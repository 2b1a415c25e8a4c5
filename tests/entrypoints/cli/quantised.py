"""A tiny checkpoint that can be quantised: its experts are as wide as a block."""

from pathlib import Path

from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.hf_config import MingTextConfig
from sglang_omni.models.ming.tiny import configs, write_tiny_checkpoint
from sglang_omni.models.ming.tiny.draw import WeightSampler
from sglang_omni.models.ming.tiny.encoders import sample_encoder_weights
from sglang_omni.models.ming.tiny.files import write_json
from sglang_omni.models.ming.tiny.thinker import sample_thinker_weights
from sglang_omni.models.ming.tiny.tokenizers import build_thinker_tokenizer
from sglang_omni.models.ming.tiny.write import write_shards


def write_wide_checkpoint(folder: Path, width: int = BLOCK) -> None:
    """Write the tiny checkpoint to `folder`, with experts of this width."""
    write_tiny_checkpoint(folder)
    tokenizer = build_thinker_tokenizer()
    config = configs.build_main_config(tokenizer)
    config["llm_config"] |= {"moe_intermediate_size": width}
    text, draw = MingTextConfig(**config["llm_config"]), WeightSampler(0)
    write_shards(
        folder, sample_thinker_weights(draw, text, tokenizer) | sample_encoder_weights(draw, config)
    )
    write_json(folder / "config.json", config)
