"""Which tensors of the audio VAE's file the model uses. Does not import torch."""

import re

EXECUTED_ENCODER_LAYERS = 4
"""The released encoder shares one configuration object with its aggregator, which sets the layer
count to 4. So the reference executes only the first four of the stored layers."""


def is_unused_tensor(name: str, executed: int = EXECUTED_ENCODER_LAYERS) -> bool:
    """Return whether the released file stores a tensor that the model does not use.

    `executed` is the number of encoder layers that run.
    """
    if layer := re.match(r"encoder\.encoder\.layers\.(\d+)\.", name):
        return int(layer[1]) >= executed
    return name.endswith(".embed_tokens.weight") or name.startswith("encoder.norm.")
