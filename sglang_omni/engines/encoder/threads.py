"""How many cores a process computes on."""

import torch

from sglang_omni.engines.encoder.contract import EncoderSettings


def use_threads(settings: EncoderSettings) -> None:
    """Limit PyTorch to the threads of the settings, if they say."""
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
