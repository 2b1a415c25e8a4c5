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
# Parameters that are split among ranks along their fan-in.
ROW_PARALLEL = ("dense.weight", "down_proj.weight", "w2_weight")


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


def _draw_normal(name: str, tensor: Tensor, std: float) -> None:
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    generator = torch.Generator(tensor.device).manual_seed(seed)
    for part in _chunks(tensor):
        numbers = torch.randn(part.shape, generator=generator, device=tensor.device)
        part.copy_(numbers.mul_(std))


def _chunks(tensor: Tensor) -> Iterator[Tensor]:
    """Yield flat views of at most `CHUNK` elements."""
    yield from tensor.view(-1).split(CHUNK)
