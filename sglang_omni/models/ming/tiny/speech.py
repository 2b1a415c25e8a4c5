"""Weights of the talker and of the audio VAE: random, and tuned to babble in vowels.

Names and shapes are those of the product's modules (which the goldens hold to the checkpoint's),
with what the released files store besides.
"""

import math

import torch
from torch import Tensor, nn

from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.speech.dit import ROTARY_THETA
from sglang_omni.models.ming.speech.qwen2 import compute_inverse_frequencies
from sglang_omni.models.ming.speech.talker import ROTARY_BUFFERS, Talker
from sglang_omni.models.ming.speech.vae import HOPS_PER_WINDOW, AudioVAE
from sglang_omni.models.ming.tiny.draw import Draw, Shapes, sane_tensors

WINDOW = "decoder.head.istft.window"

# Departures from unit scale, by the end of the name, so that speech depends on text, voice and
# history: attention has few tokens in focus and is loud, and what is the same for every input,
# the summary tokens of the aggregators, is quiet.
GAINS = {
    ".q_proj.weight": 3.0,
    ".to_q.weight": 3.0,
    ".o_proj.weight": 2.0,
    ".to_out.0.weight": 2.0,
    ".cond_embedder.weight": 3.0,
    ".word_embedder.weight": 0.1,
    ".cls_embed": 0.1,
}
# Scale of the velocity against the noise it moves.
VELOCITY_GAIN = 0.6
# Logit of "stop": its deviation between patches, and how rare it is.
STOP_STD, STOP_MEAN = 1.5, -1.2

# Recordings are about this quiet; the encoder's first layer brings them to unit scale.
RECORDING_LEVEL = 0.1
# Raw value of the posterior's deviation: softplus(-2) = 0.13.
POSTERIOR_RAW = -2.0

# The voice of the VAE. A pitch whose period fits the hop keeps its phase from frame to frame.
PITCH_HZ = 150.0
HARMONIC_LOG_MAGNITUDE, NOISE_LOG_MAGNITUDE = 3.6, -2.0
TILT_HZ = 1200.0  # the spectrum falls by a factor e over so many Hz
FORMANTS_HZ = (500.0, 1100.0, 2400.0)
FORMANT_WIDTH = 0.35  # of its frequency
FORMANT_STD, LOUDNESS_STD, DETAIL_STD, PHASE_STD = 0.8, 0.5, 0.05, 0.1


def talker_weights(
    draw: Draw, config: TalkerConfig, stop_mean: float = STOP_MEAN
) -> dict[str, Tensor]:
    """Every tensor of `talker/model.safetensors`, float32.

    `stop_mean` is the mean logit of "this patch is the last"; its deviation is `STOP_STD`.
    """
    tensors = _listening_tensors(draw, _shapes(Talker(config)))
    tensors["cfm.model.final_layer.linear.weight"] *= VELOCITY_GAIN
    # The two logits are opposite, so their difference has the wanted mean and deviation.
    direction = draw.normal("stop", (config.llm.hidden_size,), STOP_STD / 2)
    direction /= math.sqrt(config.llm.hidden_size)
    tensors["stop_head.weight"] = torch.stack((-direction, direction))
    tensors["stop_head.bias"] = torch.tensor([-stop_mean / 2, stop_mean / 2])
    for name, part in zip(ROTARY_BUFFERS, (config.flow, config.aggregator), strict=True):
        tensors[name] = compute_inverse_frequencies(
            part.hidden_size // part.num_heads, ROTARY_THETA
        )
    return tensors


def vae_weights(draw: Draw, config: VAEConfig) -> dict[str, Tensor]:
    """Every tensor of `talker/vae/model.safetensors`, float32."""
    shapes = _shapes(AudioVAE(config, encoder_layers=None)) | _unused_by_the_vae(config)
    tensors = _listening_tensors(draw, shapes)
    tensors["encoder.fc1.weight"] /= RECORDING_LEVEL
    tensors["encoder.fc3.bias"][config.encoder.latent_dim :] += POSTERIOR_RAW
    tensors[WINDOW] = torch.hann_window(config.decoder.frame * HOPS_PER_WINDOW)
    weight, bias = voice(draw, config)
    tensors["decoder.head.out.weight"], tensors["decoder.head.out.bias"] = weight, bias
    return tensors


def _listening_tensors(draw: Draw, shapes: Shapes) -> dict[str, Tensor]:
    """Sane tensors with the gains of `GAINS`."""
    tensors = sane_tensors(draw, shapes)
    for name, tensor in tensors.items():
        for ending, gain in GAINS.items():
            if name.endswith(ending):
                tensor *= gain
    return tensors


def voice(draw: Draw, config: VAEConfig) -> tuple[Tensor, Tensor]:
    """Weight [2 * bins, hidden] and bias [2 * bins] of the decoder's head: a humming voice.

    The bias holds a still vowel: harmonics of one pitch under a falling spectrum. Hidden states
    move its formants and its loudness, and shake the phases a little.
    """
    size, hidden = config.decoder.frame * HOPS_PER_WINDOW, config.decoder.backbone.hidden_size
    spacing = config.sample_rate / size
    frequencies = torch.arange(size // 2 + 1) * spacing
    levels = _still_vowel(frequencies, round(PITCH_HZ / spacing))
    shapes = torch.cat((torch.full_like(frequencies, LOUDNESS_STD)[None], _formants(frequencies)))
    directions = draw.normal("formants", (len(shapes), hidden))
    rows = (len(frequencies), hidden)
    movement = shapes.T @ directions + draw.normal("detail", rows, DETAIL_STD)
    weight = torch.cat((movement, draw.normal("phase shake", rows, PHASE_STD)))
    bias = torch.cat((levels, draw.normal("phases", levels.shape, math.pi)))
    return weight / math.sqrt(hidden), bias


def _still_vowel(frequencies: Tensor, pitch: int) -> Tensor:
    """Log magnitudes [bins] of a hum whose harmonics are `pitch` bins apart, over faint noise."""
    place = torch.arange(len(frequencies))
    harmonic = (place % pitch == 0) & (place > 0)
    levels = HARMONIC_LOG_MAGNITUDE - frequencies / TILT_HZ
    return torch.where(harmonic, levels.clamp_min(NOISE_LOG_MAGNITUDE), NOISE_LOG_MAGNITUDE)


def _formants(frequencies: Tensor) -> Tensor:
    """Bumps [formants, bins] of log magnitude around the formants."""
    centres = torch.tensor(FORMANTS_HZ)[:, None]
    distance = (frequencies - centres) / (FORMANT_WIDTH * centres)
    return FORMANT_STD * torch.exp(-distance.square() / 2)


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _unused_by_the_vae(config: VAEConfig) -> dict[str, tuple[int, ...]]:
    """Tensors that the released file stores and nothing computes with."""
    encoder, decoder = config.encoder.backbone.hidden_size, config.decoder.backbone.hidden_size
    return {
        "encoder.norm.weight": (encoder,),
        "encoder.norm.bias": (encoder,),
        "encoder.encoder.embed_tokens.weight": (1, encoder),
        "encoder.aggregator.embed_tokens.weight": (1, encoder),
        "decoder.decoder.embed_tokens.weight": (1, decoder),
    }
