"""The rotation kernel gives what the plain rule gives."""

import os
import subprocess
import sys

import torch

from sglang_omni.models.ming.encoders.rotary import rotate_qkv_reference, select_rotary_kernel

# Triton decides at import whether it interprets, so the kernel runs in a process of its own.
PROGRAM = """
import torch
from sglang_omni.models.ming.encoders.rotary import rotate_qkv_reference
from sglang_omni.models.ming.encoders.rotary_triton import rotate_qkv_in_place

# Interpreted, a cast to bfloat16 truncates where a GPU rounds: one unit in the last place.
for heads, dim, dtype, rtol in ((3, 36, torch.float32, 1e-6), (2, 72, torch.bfloat16, 2**-7)):
    qkv = torch.randn(5, 3, heads, dim, dtype=dtype)
    angles = torch.randn(5, dim // 2)
    plain = rotate_qkv_reference(qkv, angles.cos(), angles.sin())
    fast = rotate_qkv_in_place(qkv.clone(), angles.cos(), angles.sin())
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=rtol, atol=1e-6)
print("equal")
"""


def test_the_interpreted_kernel_equals_the_plain_rule() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "equal\n", done.stderr


def test_a_rotation_keeps_lengths_and_leaves_values_alone() -> None:
    qkv, angles = torch.randn(4, 3, 2, 8), torch.randn(4, 4)
    q, k, v = rotate_qkv_reference(qkv, angles.cos(), angles.sin())
    torch.testing.assert_close(q.norm(dim=-1), qkv[:, 0].norm(dim=-1))
    torch.testing.assert_close(k.norm(dim=-1), qkv[:, 1].norm(dim=-1))
    assert torch.equal(v, qkv[:, 2])
    assert not torch.equal(q, qkv[:, 0])


def test_the_cpu_uses_the_plain_rule() -> None:
    assert select_rotary_kernel(torch.device("cpu")) is rotate_qkv_reference
