"""The talker and the audio VAE at the released model's shapes, with random weights."""

from dataclasses import replace
from typing import cast

import torch
from torch import nn

from benchmarks.encoders.shapes import randomise_weights
from sglang_omni.models.ming.config import (
    DiTConfig,
    Qwen2Config,
    TalkerConfig,
    VAEConfig,
    VAESideConfig,
)
from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.speech.vae import AudioVAE
from sglang_omni.models.ming.speech.voices import VoicePrompt
from sglang_omni.models.weights import use_device_and_dtype

_LLM = Qwen2Config(896, 4864, 24, 14, 2, 1e-6, 1e6, 151_936)
_FLOW = DiTConfig(64, 1024, 8, 16, 4)
# The width and window of the VAE's backbone are known; the rest is assumed to be the talker's.
_WINDOWED = replace(_LLM, vocab_size=1, use_sliding_window=True, sliding_window=64)

TALKER = TalkerConfig(_LLM, _FLOW, _FLOW, 10, 4, 32, 2.0)
DEEP = replace(TALKER, flow=replace(_FLOW, depth=28), aggregator=replace(_FLOW, depth=28))
"""The 28-layer flow model of some published step times."""
VAE = VAEConfig(44_100, 4, VAESideConfig(882, 64, _WINDOWED), VAESideConfig(882, 64, _WINDOWED))

# Shapes that any machine can run, to try a benchmark.
_SMALL_LLM = replace(
    _LLM,
    hidden_size=128,
    intermediate_size=160,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    vocab_size=2048,
)
_SMALL_FLOW = replace(_FLOW, hidden_size=128, depth=2, num_heads=2)
_SMALL_BACKBONE = replace(
    _WINDOWED,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
)
SMALL_TALKER = replace(TALKER, llm=_SMALL_LLM, flow=_SMALL_FLOW, aggregator=_SMALL_FLOW)
SMALL_VAE = replace(
    VAE,
    encoder=replace(VAE.encoder, backbone=_SMALL_BACKBONE),
    decoder=replace(VAE.decoder, backbone=_SMALL_BACKBONE),
)

VOICE_PATCHES = 12
STOP_LOGIT = -8.0


def random_speech_model(
    talker: TalkerConfig, device: torch.device, dtype: torch.dtype
) -> SpeechModules:
    """Build modules of these shapes that never stop, and one voice. There is no tokenizer."""
    with use_device_and_dtype(device, dtype):
        modules: tuple[nn.Module, nn.Module] = Talker(talker).to(dtype), AudioVAE(VAE)
    for module in modules:
        randomise_weights(module)
        module.eval().requires_grad_(False)
    speech, vae = cast(tuple[Talker, AudioVAE], modules)
    speech.stop_head.weight.zero_()
    speech.stop_head.bias.copy_(torch.tensor([0.0, STOP_LOGIT]))
    latents = torch.randn(4 * VOICE_PATCHES, talker.latent_dim, device=device)
    embeds = 0.1 * torch.randn(VOICE_PATCHES, talker.llm.hidden_size, device=device, dtype=dtype)
    voice = VoicePrompt("voice", "", latents, embeds, None)
    return SpeechModules(speech, vae, cast(PromptTokenizer, None), {"voice": voice}, None)
