"""The VAE's initial weights: close to a filter bank and an inverse STFT.

From random weights the encoder needs its first thousand steps to learn that speech has frequencies,
and the head to learn that a frame's centre is not its start.
"""

import math

import torch
from torch import Tensor, nn

from cookbook.ming_mini.vocoder import phase
from sglang_omni.models.ming.config import VAEConfig
from sglang_omni.models.ming.speech.vae import AudioVAE

RECORDING_LEVEL = 0.08
TOP_HZ = 11_000.0
POSTERIOR_RAW = -2.0
QUIET_LOG_MAGNITUDE = -1.0
STD = 0.02


def new_vae(config: VAEConfig, seed: int) -> AudioVAE:
    """Build a VAE with initial weights that follow from `seed`."""
    torch.manual_seed(seed)
    vae = AudioVAE(config, encoder_layers=None)
    for module in vae.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=1 / math.sqrt(2 * module.in_features))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    with torch.no_grad():
        _start_encoder(vae)
        _start_head(vae)
    return vae


def _start_encoder(vae: AudioVAE) -> None:
    encoder = vae.encoder
    filters = wavelets(encoder.fc1.out_features, encoder.frame, vae.config.sample_rate)
    encoder.fc1.weight.copy_(filters / RECORDING_LEVEL)
    nn.init.eye_(encoder.fc2.weight)
    nn.init.normal_(encoder.cls_embed, std=1.0)
    latent = encoder.fc3.out_features // 2
    encoder.fc3.weight[latent:] *= 0.1
    encoder.fc3.bias[latent:] = POSTERIOR_RAW


def wavelets(count: int, frame: int, rate: int) -> Tensor:
    """Return windowed cosines and sines [count, frame] of unit norm at mel-spaced frequencies."""
    pairs = count // 2
    top = 2595 * math.log10(1 + TOP_HZ / 700)
    hertz = 700 * (10 ** (torch.linspace(60.0, top, pairs + 1) / 2595) - 1)
    centre, width = hertz[:-1, None], hertz.diff()[:, None].clamp_min(2 * rate / frame)
    time = (torch.arange(frame) - frame / 2) / rate
    # A band of `width` Hz gets a window of about two of its periods.
    window = torch.exp(-0.5 * (time * width * 1.5).square())
    angle = 2 * math.pi * centre * time
    waves = torch.cat((window * angle.cos(), window * angle.sin()))
    waves = torch.cat((waves, torch.randn(count - len(waves), frame)))
    return waves / waves.norm(dim=1, keepdim=True) * math.sqrt(frame / 40)


def _start_head(vae: AudioVAE) -> None:
    """Initialise the head with quiet pulses at the centre of each frame, as in steady speech.

    The first hidden number moves the pulses in time.
    """
    head = vae.decoder.head
    bins = head.istft.size // 2 + 1
    place = torch.arange(bins)
    nn.init.normal_(head.out.weight, std=STD)
    head.out.bias[:bins] = QUIET_LOG_MAGNITUDE
    hertz = (place * vae.config.sample_rate / head.istft.size).numpy()
    head.out.bias[bins:] = math.pi * (place % 2) + torch.from_numpy(phase(hertz)).float()
    delay = 2 * math.pi * place / head.istft.size
    # A small step, because the file keeps eight bits of these.
    head.out.weight[bins:, 0] = delay * head.istft.hop / 32
