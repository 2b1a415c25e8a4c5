"""Random weights that keep activations at unit scale, each a function of seed and tensor name."""

import hashlib
import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor

from sglang_omni.models.ming.speech.noise import WORDS_PER_BLOCK, sample_gaussian

BIAS_STD = 0.02
# Scale of the output of each branch, relative to the residual stream, so that the input still
# matters in deep layers.
RESIDUAL_GAIN = 0.5

Shapes = Mapping[str, tuple[int, ...]]

_EMBEDDING = re.compile(r"(embeddings|embed_tokens|word_embedder|pos_embed)\.weight$|cls_embed$")
_RESIDUAL = re.compile(
    r"\.(dense|down_proj|o_proj|to_out\.0|ff\.2|attn\.proj|attn\.out|mlp\.2|mlp\.linear_fc2)\.weight$"
)


class WeightSampler:
    """Sample standard normal numbers by name.

    They come from the counter-based noise of the talker. So a tensor does not depend on the order
    of sampling, on other tensors or on a library's generator.
    """

    def __init__(self, seed: int) -> None:
        self._seed = torch.tensor([seed])

    def sample_normal(self, name: str, shape: tuple[int, ...], std: float = 1.0) -> Tensor:
        """Return the float32 numbers of `name`, in `shape`, scaled by `std`."""
        digest = hashlib.sha256(name.encode()).digest()
        stream = torch.tensor([int.from_bytes(digest[:8], "little", signed=True)])
        count = math.prod(shape)
        numbers = sample_gaussian(
            self._seed, stream, torch.zeros(1, dtype=torch.int64), _round_up(count)
        )
        return numbers[0, :count].view(shape) * std


def _round_up(count: int) -> int:
    """Round `count` up to a multiple of the numbers that the generator makes at once."""
    return -(-count // WORDS_PER_BLOCK) * WORDS_PER_BLOCK


def sample_tensor(sampler: WeightSampler, name: str, shape: tuple[int, ...]) -> Tensor:
    """Return float32 initial values of the tensor `name`, by its name and shape.

    Norm weights are 1, biases small, embedding tables have unit scale, and matrices and kernels are
    scaled by their fan-in, so that unit input gives unit output.
    """
    if name.endswith("bias"):
        return sampler.sample_normal(name, shape, BIAS_STD)
    if len(shape) == 1:
        return torch.ones(shape)
    if _EMBEDDING.search(name):
        return sampler.sample_normal(name, shape)
    gain = RESIDUAL_GAIN if _RESIDUAL.search(name) else 1.0
    return sampler.sample_normal(name, shape, gain / math.sqrt(math.prod(shape[1:])))


def sample_tensors(sampler: WeightSampler, shapes: Shapes) -> dict[str, Tensor]:
    """Call `sample_tensor` for every name of `shapes`."""
    return {name: sample_tensor(sampler, name, shape) for name, shape in shapes.items()}
