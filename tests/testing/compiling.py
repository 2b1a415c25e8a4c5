"""Compile Triton kernels for a Hopper GPU where there is none."""

from typing import Any

import pytest
import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

HOPPER = GPUTarget("cuda", 90, 32)
NAMES = {
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float8_e4m3fn: "fp8e4nv",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.uint8: "u8",
}


def kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"*{NAMES[value.dtype]}"
    return "fp32" if isinstance(value, float) else "i32"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Kernels that were launched are compiled instead, and listed."""
    found: list[Any] = []

    def compile_launch(
        self: JITFunction, *args: Any, grid: Any, warmup: bool, **named: Any
    ) -> None:
        names = [parameter.name for parameter in self.params]
        bound = dict(zip(names, args, strict=False)) | named
        signature, constants = {}, {}
        for parameter in self.params:
            value = bound.pop(parameter.name)
            if parameter.is_constexpr:
                constants[(parameter.num,)] = value
            signature[parameter.name] = "constexpr" if parameter.is_constexpr else kind(value)
        # Tensors begin at 16 bytes, as the launcher sees; without that loads are not pipelined.
        aligned = [["tt.divisibility", 16]]
        attributes = {
            (parameter.num,): aligned
            for parameter in self.params
            if signature[parameter.name].startswith("*")
        }
        source = ASTSource(self, signature, constants, attributes)
        found.append(triton.compile(source, target=HOPPER, options=bound))

    monkeypatch.setattr(JITFunction, "run", compile_launch)
    return found
