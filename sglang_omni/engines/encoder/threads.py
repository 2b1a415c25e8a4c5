"""The number of CPU threads of a process."""

import torch

from sglang_omni.engines.encoder.contract import EncoderSettings


def limit_threads(settings: EncoderSettings) -> None:
    """Limit PyTorch to the number of threads in the settings, if set."""
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
