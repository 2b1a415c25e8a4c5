"""Weights of the talker and the audio VAE: random, and tuned to produce vowel-like babble.

Names and shapes are those of the product's modules (which the golden tests compare with the
checkpoint), plus the unused tensors that the released files store.
"""

import math

import torch
from torch import Tensor, nn

from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.speech.dit import ROTARY_THETA
from sglang_omni.models.ming.speech.qwen2 import compute_inverse_frequencies
from sglang_omni.models.ming.speech.talker import ROTARY_BUFFERS, Talker
from sglang_omni.models.ming.speech.vae import HOPS_PER_WINDOW, AudioVAE
from sglang_omni.models.ming.tiny.draw import Shapes, WeightSampler, sample_tensors

ISTFT_WINDOW = "decoder.head.istft.window"

# Gains by name suffix, so that speech depends on text, voice and history: attention focuses on few
# tokens and has a large output. The summary tokens of the aggregators, which are the same for
# every input, are small.
GAINS = {
    ".q_proj.weight": 3.0,
    ".to_q.weight": 3.0,
    ".o_proj.weight": 2.0,
    ".to_out.0.weight": 2.0,
    ".cond_embedder.weight": 3.0,
    ".word_embedder.weight": 0.1,
    ".cls_embed": 0.1,
}
# Scale of the velocity relative to the noise.
VELOCITY_GAIN = 0.6
# Standard deviation and mean of the "stop" logit over patches.
STOP_STD, STOP_MEAN = 1.5, -1.2

# Typical level of recordings; the first layer of the encoder scales it to 1.
RECORDING_LEVEL = 0.1
# Raw value of the posterior deviation: softplus(-2) = 0.13.
POSTERIOR_RAW = -2.0

# The voice of the VAE. A pitch whose period divides the hop keeps its phase between frames.
PITCH_HZ = 150.0
HARMONIC_LOG_MAGNITUDE, NOISE_LOG_MAGNITUDE = 3.6, -2.0
TILT_HZ = 1200.0  # The spectrum falls by a factor e over this range.
FORMANTS_HZ = (500.0, 1100.0, 2400.0)
FORMANT_WIDTH = 0.35  # Relative to its frequency.
FORMANT_STD, LOUDNESS_STD, DETAIL_STD, PHASE_STD = 0.8, 0.5, 0.05, 0.1


def sample_talker_weights(
    sampler: WeightSampler, config: TalkerConfig, stop_mean: float = STOP_MEAN
) -> dict[str, Tensor]:
    """Return all float32 tensors of `talker/model.safetensors`.

    `stop_mean` is the mean logit of "this patch is the last"; its standard deviation is `STOP_STD`.
    """
    tensors = _sample_tensors_with_gains(sampler, _list_shapes(Talker(config)))
    tensors["cfm.model.final_layer.linear.weight"] *= VELOCITY_GAIN
    # The two logits are opposite, so their difference has the required mean and deviation.
    direction = sampler.sample_normal("stop", (config.llm.hidden_size,), STOP_STD / 2)
    direction /= math.sqrt(config.llm.hidden_size)
    tensors["stop_head.weight"] = torch.stack((-direction, direction))
    tensors["stop_head.bias"] = torch.tensor([-stop_mean / 2, stop_mean / 2])
    for name, dit_config in zip(ROTARY_BUFFERS, (config.flow, config.aggregator), strict=True):
        tensors[name] = compute_inverse_frequencies(
            dit_config.hidden_size // dit_config.num_heads, ROTARY_THETA
        )
    return tensors


def sample_vae_weights(sampler: WeightSampler, config: VAEConfig) -> dict[str, Tensor]:
    """Return all float32 tensors of `talker/vae/model.safetensors`."""
    shapes = _list_shapes(AudioVAE(config, encoder_layers=None)) | _list_unused_vae_tensors(config)
    tensors = _sample_tensors_with_gains(sampler, shapes)
    tensors["encoder.fc1.weight"] /= RECORDING_LEVEL
    tensors["encoder.fc3.bias"][config.encoder.latent_dim :] += POSTERIOR_RAW
    tensors[ISTFT_WINDOW] = torch.hann_window(config.decoder.frame * HOPS_PER_WINDOW)
    weight, bias = build_voice_head(sampler, config)
    tensors["decoder.head.out.weight"], tensors["decoder.head.out.bias"] = weight, bias
    return tensors


def _sample_tensors_with_gains(sampler: WeightSampler, shapes: Shapes) -> dict[str, Tensor]:
    """Return sampled tensors, multiplied by `GAINS`."""
    tensors = sample_tensors(sampler, shapes)
    for name, tensor in tensors.items():
        for suffix, gain in GAINS.items():
            if name.endswith(suffix):
                tensor *= gain
    return tensors


def build_voice_head(sampler: WeightSampler, config: VAEConfig) -> tuple[Tensor, Tensor]:
    """Return weight [2 * bins, hidden] and bias [2 * bins] of the decoder's head: a humming voice.

    The bias encodes a constant vowel: harmonics of one pitch under a falling spectrum. Hidden
    states change its formants and loudness, and vary the phases slightly.
    """
    size, hidden = config.decoder.frame * HOPS_PER_WINDOW, config.decoder.backbone.hidden_size
    spacing = config.sample_rate / size
    frequencies = torch.arange(size // 2 + 1) * spacing
    levels = _build_vowel(frequencies, round(PITCH_HZ / spacing))
    shapes = torch.cat(
        (torch.full_like(frequencies, LOUDNESS_STD)[None], _build_formants(frequencies))
    )
    directions = sampler.sample_normal("formants", (len(shapes), hidden))
    rows = (len(frequencies), hidden)
    movement = shapes.T @ directions + sampler.sample_normal("detail", rows, DETAIL_STD)
    weight = torch.cat((movement, sampler.sample_normal("phase shake", rows, PHASE_STD)))
    bias = torch.cat((levels, sampler.sample_normal("phases", levels.shape, math.pi)))
    return weight / math.sqrt(hidden), bias


def _build_vowel(frequencies: Tensor, pitch: int) -> Tensor:
    """Return log magnitudes [bins] of harmonics, `pitch` bins apart, over faint noise."""
    bins = torch.arange(len(frequencies))
    harmonic = (bins % pitch == 0) & (bins > 0)
    levels = HARMONIC_LOG_MAGNITUDE - frequencies / TILT_HZ
    return torch.where(harmonic, levels.clamp_min(NOISE_LOG_MAGNITUDE), NOISE_LOG_MAGNITUDE)


def _build_formants(frequencies: Tensor) -> Tensor:
    """Return log-magnitude bumps [formants, bins] around the formants."""
    centres = torch.tensor(FORMANTS_HZ)[:, None]
    distance = (frequencies - centres) / (FORMANT_WIDTH * centres)
    return FORMANT_STD * torch.exp(-distance.square() / 2)


def _list_shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _list_unused_vae_tensors(config: VAEConfig) -> dict[str, tuple[int, ...]]:
    """Return the tensors that the released file stores and nothing uses."""
    encoder, decoder = config.encoder.backbone.hidden_size, config.decoder.backbone.hidden_size
    return {
        "encoder.norm.weight": (encoder,),
        "encoder.norm.bias": (encoder,),
        "encoder.encoder.embed_tokens.weight": (1, encoder),
        "encoder.aggregator.embed_tokens.weight": (1, encoder),
        "decoder.decoder.embed_tokens.weight": (1, decoder),
    }
