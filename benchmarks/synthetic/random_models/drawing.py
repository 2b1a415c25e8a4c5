"""Draw a model's parameters in place, on the GPU, so that activations and routing stay balanced.

Norms are 1, embeddings N(0, 1), biases 0, and every matrix is N(0, 1 / fan-in). Then routers see
inputs of unit variance, and choose experts evenly. SGLang's dummy weights, which are all drawn
alike, send every token to the same experts.
"""

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

# Elements drawn at once: 0.25 GiB of float32.
CHUNK = 1 << 26
# Deviation of stored FP8 weights, whose largest value is 448. The scale divides it out.
FP8_STD = 64.0
FP8_SCALE = "_scale_inv"
# Weights of four bits: two values of 0 to 15 in a byte, drawn evenly, less 8. Half of the scales
# are negative, because the mean of the values is not zero.
INT4_WORDS, INT4_SCALES = ("_packed", "_qweight"), ("_scale", "_scales")
INT4_STD = 21.5**0.5
GROUP = 128
# Parameters that are split among ranks along their fan-in.
ROW_PARALLEL = ("dense.weight", "down_proj.weight", "w2_weight")
ROW_PARALLEL_INT4 = ("w2_scale", "w2_scales")


def draw_parameters(model: nn.Module, ranks: int) -> None:
    """Fill every parameter of `model`, which is one of `ranks` tensor-parallel ranks.

    The numbers follow from a parameter's name, so that ranks agree about what they both hold.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            draw_parameter(name, parameter.data, ranks)


def draw_parameter(name: str, tensor: Tensor, ranks: int) -> None:
    """Fill one parameter by its name and dtype."""
    if name.endswith("bias"):
        tensor.zero_()
    elif "norm" in name:
        tensor.fill_(1)
    elif name.endswith(FP8_SCALE):
        tensor.fill_(_block_scale(name, tensor, ranks))
    elif tensor.dtype == torch.float8_e4m3fn:
        _draw_normal(name, tensor, FP8_STD)
    elif name.endswith(INT4_WORDS):
        tensor.view(torch.uint8).random_(0, 256, generator=_seeded(name, tensor))
    elif name.endswith(INT4_SCALES):
        _draw_group_scales(name, tensor, ranks)
    else:
        _draw_normal(
            name, tensor, 1.0 if "embeddings" in name else _standard_deviation(name, tensor, ranks)
        )


def _standard_deviation(name: str, tensor: Tensor, ranks: int) -> float:
    split = ranks if name.endswith(ROW_PARALLEL) else 1
    return float((tensor.shape[-1] * split) ** -0.5)


def _block_scale(name: str, tensor: Tensor, ranks: int) -> float:
    """Return the scale of blocks of 128 columns.

    With it, the stored values have the deviation `FP8_STD`.
    """
    split = ranks if name.removesuffix(FP8_SCALE).endswith(ROW_PARALLEL) else 1
    return float((tensor.shape[-1] * 128 * split) ** -0.5 / FP8_STD)


def _draw_group_scales(name: str, tensor: Tensor, ranks: int) -> None:
    """Fill the scales of groups of 128 columns, so that weights have the usual deviation.

    Ours are [..., rows / 64, groups, 64], SGLang's [..., rows, groups].
    """
    groups = tensor.shape[-2 if name.endswith("_scale") else -1]
    split = ranks if name.endswith(ROW_PARALLEL_INT4) else 1
    scale = (groups * GROUP * split) ** -0.5 / INT4_STD
    signs = torch.randint(0, 2, tensor.shape, generator=_seeded(name, tensor), device=tensor.device)
    tensor.copy_(signs.mul_(2).sub_(1)).mul_(scale)


def _seeded(name: str, tensor: Tensor) -> torch.Generator:
    """Return a generator whose numbers follow from the name of a parameter."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    return torch.Generator(tensor.device).manual_seed(seed)


def _draw_normal(name: str, tensor: Tensor, std: float) -> None:
    generator = _seeded(name, tensor)
    for part in _chunks(tensor):
        numbers = torch.randn(part.shape, generator=generator, device=tensor.device)
        part.copy_(numbers.mul_(std))


def _chunks(tensor: Tensor) -> Iterator[Tensor]:
    """Yield flat views of at most `CHUNK` elements."""
    yield from tensor.view(-1).split(CHUNK)
