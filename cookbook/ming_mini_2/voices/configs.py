"""The sizes of talker and VAE, about 14 million parameters, 28 MB in bf16.

What is not named here is as in the present Ming-mini.
"""

from tokenizers import Tokenizer

from cookbook.ming_mini import configs as mini
from sglang_omni.models.ming.tiny.configs import Json, compute_vocabulary_size

FRAME = 504
"""Samples of a VAE frame, 11.4 ms: the head's windows are four of them, 46 ms.

Within 80 ms, as in the released model, the pitch changes too much for one phase per bin. The
inverse STFT needs an even number, and a latent (3528 samples) has a whole number of frames.
"""
FRAMES_A_LATENT = 7
# Each of the frames has half as many numbers to predict as one of 20 ms, but there are nearly twice
# as many, and the windows of attention (64 rows) reach about half as far.
VAE_DECODER_LAYERS = 5
VAE_ENCODER_LAYERS, VAE_ENCODER_UNITS = 1, 192
"""Layers that see all frames, before the aggregator's four (a server runs four at most), and units
of the feed-forward part of each."""
BACKBONE_LAYERS = 6
FLOW_DEPTH = 7
PATCH, HISTORY = 2, 16
"""Latents of a patch and before it: one state of the backbone tells what is said in 160 ms.

In 320 ms there are four or five sounds, and so small a backbone does not tell them all (README.md).
"""


def vae_config() -> Json:
    """Return `talker/vae/config.json`."""
    config = mini.vae_config() | {"patch_size": FRAMES_A_LATENT}
    config["enc_kwargs"] |= {"input_dim": FRAME, "hop_size": FRAME}
    config["enc_kwargs"]["backbone"] |= {
        "num_hidden_layers": VAE_ENCODER_LAYERS,
        "intermediate_size": VAE_ENCODER_UNITS,
    }
    config["dec_kwargs"] |= {"output_dim": FRAME}
    config["dec_kwargs"]["backbone"] |= {"num_hidden_layers": VAE_DECODER_LAYERS}
    return config


def talker_config() -> Json:
    """Return `talker/config.json`."""
    config = mini.talker_config()
    config["flowmodel"] |= {"depth": FLOW_DEPTH}
    return config | {"patch_size": PATCH, "history_patch_size": HISTORY}


def talker_llm_config(tokenizer: Tokenizer) -> Json:
    """Return `talker/llm/config.json`."""
    return mini.talker_llm_config(tokenizer) | {
        "num_hidden_layers": BACKBONE_LAYERS,
        "vocab_size": compute_vocabulary_size(tokenizer),
    }
