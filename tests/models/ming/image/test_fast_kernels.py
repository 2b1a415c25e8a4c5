"""The fused kernels give what plain PyTorch gives: interpreted, and on a GPU."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.image.fast.ops import BlockOps, RowNorm, TorchOps
from sglang_omni.models.ming.image.fast.rope import Rope
from sglang_omni.models.ming.image.fast.rows import Fp8RowLinear, QuantizedRows, Rows, quantize_rows

ITEMS, POSITIONS = 2, 6
SHAPES = ((96, 3, 24, 160), (256, 2, 128, 640))
"""Width, heads, head width and feed-forward width."""
Run = Callable[[BlockOps], list[Tensor]]


def dequantize(rows: Rows) -> Tensor:
    if isinstance(rows, QuantizedRows):
        return rows.data.float() * rows.scales
    return rows.float()


def list_runs(
    shape: tuple[int, int, int, int], dtype: torch.dtype, device: str, fp8: bool
) -> dict[str, Run]:
    """Return one run of each operation on the same random inputs."""
    width, heads, head_width, inner = shape
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(device, dtype)

    x, y = draw(ITEMS * POSITIONS, width), draw(ITEMS * POSITIONS, width)
    norms = [RowNorm(draw(width), 1e-5, draw(ITEMS, width)) for _ in range(2)]
    plain = [RowNorm(norm.gain, norm.eps) for norm in norms]
    gate_up, gains = draw(len(x), 2 * inner), draw(2, head_width)
    qkv, angles = draw(len(x), 3, heads, head_width), torch.randn(POSITIONS, head_width // 2)
    rope = Rope(angles.cos().to(device), angles.sin().to(device))

    def add_and_norm(ops: BlockOps, pair: list[RowNorm]) -> list[Tensor]:
        total = x.clone()
        return [dequantize(ops.add_and_norm(total, y, *pair, fp8=fp8)), total]

    def add(ops: BlockOps) -> list[Tensor]:
        total = x.clone()
        ops.add(total, y, norms[0])
        return [total]

    def rotate(ops: BlockOps) -> list[Tensor]:
        rotated = qkv.clone()
        ops.rotate(rotated, gains, 1e-5, rope)
        return [rotated]

    quantize: dict[str, Run] = {"quantize": lambda ops: [dequantize(ops.quantize(x))]}
    return (quantize if fp8 else {}) | {
        "norm": lambda ops: [dequantize(ops.norm(x, norms[0], fp8=fp8))],
        "norm without scale": lambda ops: [dequantize(ops.norm(x, plain[0], fp8=fp8))],
        "add and norm": lambda ops: add_and_norm(ops, norms),
        "add and norm without scale": lambda ops: add_and_norm(ops, plain),
        "add": add,
        "rotate": rotate,
        "gate": lambda ops: [dequantize(ops.gate(gate_up, fp8=fp8))],
    }


def check_kernels(dtype: torch.dtype, device: str, fp8: bool) -> None:
    from sglang_omni.models.ming.image.fast.triton_ops import TritonOps

    # Interpreted, casts truncate where a GPU rounds.
    if fp8:
        tolerance = 0.13 if device == "cpu" else 0.05
    else:
        tolerance = 5e-6 if dtype == torch.float32 else 8e-3
    for shape in SHAPES:
        for name, run in list_runs(shape, dtype, device, fp8).items():
            for fused, plain in zip(run(TritonOps()), run(TorchOps()), strict=True):
                assert fused.shape == plain.shape, name
                rows = (fused.float() - plain.float()).flatten(1).norm(dim=1)
                error = (rows / plain.float().flatten(1).norm(dim=1)).max().item()
                assert error < tolerance, (name, shape, error)


def test_interpreted_kernels_equal_plain_pytorch() -> None:
    # Triton decides at import whether it interprets, so the kernels run in a process of their own.
    program = (
        "import torch\n"
        "from tests.models.ming.image.test_fast_kernels import check_kernels\n"
        "check_kernels(torch.float32, 'cpu', False)\n"
        "check_kernels(torch.bfloat16, 'cpu', False)\n"
        "check_kernels(torch.float32, 'cpu', True)\n"
        "print('equal')\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "equal\n", done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_equal_plain_pytorch_on_a_gpu(dtype: torch.dtype, fp8: bool) -> None:
    check_kernels(dtype, "cuda", fp8)


def test_a_row_in_fp8_has_a_scale_of_its_own() -> None:
    x = torch.randn(4, 64) * torch.tensor([1e-3, 1.0, 1e3, 0.0])[:, None]
    rows = quantize_rows(x)
    assert rows.data.dtype == torch.float8_e4m3fn
    error = (dequantize(rows) - x).abs().amax(dim=1)
    assert (error <= x.abs().amax(dim=1) * 2**-4).all()


def test_a_product_in_fp8_is_near_the_plain_product() -> None:
    weight, x = torch.randn(96, 64), torch.randn(8, 64)
    product, plain = (
        Fp8RowLinear(quantize_rows(weight), weight.dtype)(quantize_rows(x)),
        x @ weight.t(),
    )
    assert (product - plain).norm() / plain.norm() < 0.05


@pytest.mark.gpu
def test_a_product_in_fp8_on_a_gpu_is_near_that_on_the_cpu() -> None:
    weight, x = torch.randn(96, 64).bfloat16(), torch.randn(8, 64).bfloat16()
    plain = Fp8RowLinear(quantize_rows(weight), weight.dtype)(quantize_rows(x)).float()
    on_gpu = Fp8RowLinear(quantize_rows(weight.cuda()), weight.dtype)
    product = on_gpu(quantize_rows(x.cuda())).cpu().float()
    assert (product - plain).norm() / plain.norm() < 0.01
