"""Random weights that keep activations at unit scale, each a function of seed and tensor name."""

import hashlib
import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor

from sglang_omni.models.ming.speech.noise import WORDS_PER_BLOCK, sample_gaussian

BIAS_STD = 0.02
# What each branch adds to the residual stream: half of unit scale, so that depth does not drown
# the input.
RESIDUAL_GAIN = 0.5

Shapes = Mapping[str, tuple[int, ...]]

_TABLE = re.compile(r"(embeddings|embed_tokens|word_embedder|pos_embed)\.weight$|cls_embed$")
_RESIDUAL = re.compile(
    r"\.(dense|down_proj|o_proj|to_out\.0|ff\.2|attn\.proj|attn\.out|mlp\.2|mlp\.linear_fc2)\.weight$"
)


class Draw:
    """Standard normal numbers by name.

    They come from the product's counter-based noise, so a tensor does not depend on the order
    of drawing, on the tensors beside it or on a library's generator.
    """

    def __init__(self, seed: int) -> None:
        self._seed = torch.tensor([seed])

    def normal(self, name: str, shape: tuple[int, ...], std: float = 1.0) -> Tensor:
        """The float32 numbers of `name`, in `shape`, scaled by `std`."""
        digest = hashlib.sha256(name.encode()).digest()
        stream = torch.tensor([int.from_bytes(digest[:8], "little", signed=True)])
        count = math.prod(shape)
        numbers = sample_gaussian(
            self._seed, stream, torch.zeros(1, dtype=torch.int64), _whole(count)
        )
        return numbers[0, :count].view(shape) * std


def _whole(count: int) -> int:
    """`count` rounded up to what the generator makes at once."""
    return -(-count // WORDS_PER_BLOCK) * WORDS_PER_BLOCK


def sane_tensor(draw: Draw, name: str, shape: tuple[int, ...]) -> Tensor:
    """Float32 start values of the tensor `name`, judged by its name and shape.

    Norm weights are 1, biases small, embedding tables of unit scale, and matrices and kernels
    scaled by their fan-in, so that unit input gives unit output.
    """
    if name.endswith("bias"):
        return draw.normal(name, shape, BIAS_STD)
    if len(shape) == 1:
        return torch.ones(shape)
    if _TABLE.search(name):
        return draw.normal(name, shape)
    gain = RESIDUAL_GAIN if _RESIDUAL.search(name) else 1.0
    return draw.normal(name, shape, gain / math.sqrt(math.prod(shape[1:])))


def sane_tensors(draw: Draw, shapes: Shapes) -> dict[str, Tensor]:
    """`sane_tensor` for every name of `shapes`."""
    return {name: sane_tensor(draw, name, shape) for name, shape in shapes.items()}
