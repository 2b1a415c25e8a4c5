"""What earlier runs left, for those that build on it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file

from cookbook.ming_mini.layout import write_layout
from cookbook.ming_mini.weights import VAE, load_pieces
from sglang_omni.models.ming.config import VAEConfig
from sglang_omni.models.ming.talker import Talker
from sglang_omni.models.ming.talker_prompt import PromptTokenizer
from sglang_omni.models.ming.vae import AudioVAE


def trained_vae(config: VAEConfig, place: Path, device: torch.device) -> AudioVAE:
    """The VAE in the folder of a training run, or in a packed file; frozen."""
    vae = AudioVAE(config, encoder_layers=None)
    vae.load_state_dict(load_file(place) if place.is_file() else load_pieces(place, VAE))
    return vae.to(device).eval().requires_grad_(False)


def mini_tokenizer() -> PromptTokenizer:
    """The tokenizer as the product reads it."""
    with TemporaryDirectory() as name:
        write_layout(Path(name))
        return PromptTokenizer(Path(name))


def load_packed(talker: Talker, packed: Path) -> None:
    """Give a talker the weights of a packed file."""
    # Beside the weights it holds the rotary tables, which modules make themselves.
    stored = load_file(packed)
    talker.load_state_dict({name: stored[name] for name in talker.state_dict()})
