"""The talker's initial weights."""

import math

import torch
from torch import nn

from cookbook.ming_mini.layers import LAYER, RESIDUAL
from sglang_omni.models.ming.config import TalkerConfig
from sglang_omni.models.ming.speech.talker import Talker

EMBEDDING_STD = 0.5


def new_talker(config: TalkerConfig, seed: int) -> Talker:
    """Build a talker with initial weights that follow from `seed`."""
    torch.manual_seed(seed)
    talker = Talker(config)
    for name, module in talker.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=EMBEDDING_STD)
        elif isinstance(module, nn.Linear):
            # What adds to a residual stream starts small.
            scale = 0.5 if name.endswith(RESIDUAL) else 1.0
            nn.init.normal_(module.weight, std=scale / math.sqrt(module.in_features))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    with torch.no_grad():
        talker.cfm.model.final_layer.linear.weight *= 0.1
        talker.stop_head.weight *= 0.1
    return talker


def hidden_matrices(talker: Talker) -> list[nn.Parameter]:
    """Return the matrices inside the layers; embeddings and what makes the outputs are none."""
    return [
        weight
        for name, weight in talker.named_parameters()
        if weight.ndim == 2 and LAYER.match(name)
    ]
