"""The assembly that unpacks words, which no interpreter runs, gives the values of the words."""

import numpy as np
import pytest
import torch

from sglang_omni.models.ming.thinker.int4 import gemm_triton
from sglang_omni.models.ming.thinker.int4.layout import SYMMETRIC_ZERO

OFFSET = gemm_triton._OFFSET.value


def as_pairs(numbers: torch.Tensor) -> int:
    """Return a register with two bfloat16 numbers, the first in its low half."""
    low, high = numbers.bfloat16().view(torch.int16).numpy().astype(np.uint16).tolist()
    return int(low | high << 16)


def from_pairs(register: int) -> torch.Tensor:
    halves = np.array([register & 0xFFFF, register >> 16], dtype=np.uint16)
    return torch.from_numpy(halves.view(np.int16)).view(torch.bfloat16).float()


def look_up(table: int, a: int, b: int, c: int) -> int:
    """Compute lop3: bit by bit, the entry of a table at the index that three bits are."""
    result = 0
    for bit in range(32):
        index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1
        result |= (table >> index & 1) << bit
    return result


def run(assembly: str, registers: dict[str, int]) -> dict[str, int]:
    """Run the few instructions that the assembly consists of."""

    def read(name: str) -> int:
        return int(name, 0) if name[0].isdigit() else registers[name]

    for statement in assembly.strip("{}\n ").split(";"):
        operation, *operands = statement.replace(",", " ").split() or [""]
        if operation in ("", ".reg"):
            continue
        target, *sources = operands
        values = list(map(read, sources))
        if operation == "shr.b32":
            registers[target] = values[0] >> values[1]
        elif operation == "lop3.b32":
            registers[target] = look_up(values[3], *values[:3])
        elif operation == "sub.rn.bf16x2":
            registers[target] = as_pairs(from_pairs(values[0]) - from_pairs(values[1]))
        else:
            raise ValueError(f"unknown instruction {operation}")
    return registers


@pytest.mark.parametrize("zero", [0, SYMMETRIC_ZERO, 15])
@pytest.mark.parametrize("subtracts", [True, False])
def test_two_words_give_their_eight_values(zero: int, subtracts: bool) -> None:
    assembly = gemm_triton._UNPACK_AND_SUBTRACT if subtracts else gemm_triton._UNPACK
    generator = torch.Generator().manual_seed(zero)
    for first, second in torch.randint(0, 1 << 16, (50, 2), generator=generator).tolist():
        registers = {"$4": first | second << 16}
        registers["$5"] = as_pairs(torch.full((2,), float(OFFSET + zero)))
        found = run(assembly.value, registers)
        for part in range(4):
            values = torch.tensor([first >> 4 * part & 15, second >> 4 * part & 15])
            wanted = values - zero if subtracts else values + OFFSET
            assert from_pairs(found[f"${part}"]).tolist() == wanted.tolist()
