"""The sizes of Ming-mini's talker and VAE, as the configuration files of the released layout.

Everything that the layout fixes (rates, patch and history, steps, latent width) comes from the tiny
checkpoint's files; only widths and depths differ.
"""

from tokenizers import Tokenizer

from sglang_omni.models.ming.tiny import configs as tiny
from sglang_omni.models.ming.tiny.configs import Json, compute_vocabulary_size

# The decoder generates the waveform; most of its parameters are the head's [3530, 256].
VAE_DECODER = {"hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 3}
# Wide: 882 samples enter it. One layer: the aggregator's four layers see every frame too.
VAE_ENCODER = {"hidden_size": 256, "intermediate_size": 192, "num_hidden_layers": 1}
VAE_KV_HEADS = {"enc": 1, "dec": 2}

BACKBONE = {
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
# The flow model runs 20 times over 37 tokens for every 320 ms, so it dominates the speed.
FLOW = {"hidden_size": 192, "depth": 6, "num_heads": 3}
AGGREGATOR = {"hidden_size": 128, "depth": 2, "num_heads": 2}
# 3 and 4 have fewer word errors than 1 and 2 (the released model's); see README.md.
GUIDANCE = 3.0


def vae_config() -> Json:
    """Return `talker/vae/config.json`."""
    config = tiny.build_vae_config()
    for side, sizes in (("enc", VAE_ENCODER), ("dec", VAE_DECODER)):
        heads = {"num_key_value_heads": VAE_KV_HEADS[side]}
        config[f"{side}_kwargs"]["backbone"] |= sizes | heads
    return config


def talker_config() -> Json:
    """Return `talker/config.json`."""
    config = tiny.build_talker_config() | {"cfg_strength": GUIDANCE}
    config["flowmodel"] |= FLOW
    config["aggregator"] |= AGGREGATOR
    return config


def talker_llm_config(tokenizer: Tokenizer) -> Json:
    """Return `talker/llm/config.json`."""
    return (
        tiny.build_talker_llm_config(tokenizer)
        | BACKBONE
        | {"vocab_size": compute_vocabulary_size(tokenizer)}
    )
