"""The talker's initial weights."""

import math

import torch
from torch import nn

from sglang_omni.models.ming.config import TalkerConfig
from sglang_omni.models.ming.speech.talker import Talker

EMBEDDING_STD = 0.5
# Layers that add to a residual stream start small.
RESIDUAL = (".o_proj", ".down_proj", ".to_out.0", ".ff.2")


def new_talker(config: TalkerConfig, seed: int) -> Talker:
    """Build a talker with initial weights that follow from `seed`."""
    torch.manual_seed(seed)
    talker = Talker(config)
    for name, module in talker.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=EMBEDDING_STD)
        elif isinstance(module, nn.Linear):
            scale = 0.5 if name.endswith(RESIDUAL) else 1.0
            nn.init.normal_(module.weight, std=scale / math.sqrt(module.in_features))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    with torch.no_grad():
        talker.cfm.model.final_layer.linear.weight *= 0.1
        talker.stop_head.weight *= 0.1
    return talker
