"""Compile Triton kernels for Hopper GPUs on a machine without one, and read what they need.

Inside `compile_launches` kernels are compiled where they are launched, and not run. Triton takes
the same steps as on a GPU, so a kernel is later found in Triton's cache. Tensors may be on the
meta device.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

TARGET = GPUTarget("cuda", 90, 32)
# What a multiprocessor of a Hopper GPU has.
SHARED_BYTES, REGISTERS, MAX_WARPS = 227 << 10, 65_536, 64
# Taken from the shared memory for each program.
RESERVED_SHARED_BYTES = 1 << 10
REGISTER_GRANULARITY = 8
_TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
_LABEL = re.compile(r"^\s*(\.L_x_\d+):")
_BRANCH = re.compile(r"\bBRA\b.*`\((\.L_x_\d+)\)")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(\S.*?)\s*;")


class _HopperDriver:
    """Tells Triton's compiler which GPU to compile for."""

    def get_current_device(self) -> str:
        """Return a key of Triton's caches that no real GPU has."""
        return str(TARGET)

    def get_current_stream(self, _: str) -> int:
        """Return a stream, which nothing uses."""
        return 0

    def get_current_target(self) -> GPUTarget:
        """Return the architecture."""
        return TARGET


@contextmanager
def compile_launches() -> Iterator[list[Any]]:
    """Compile kernels instead of launching them, and yield the list of those compiled."""
    compiled: list[Any] = []
    run = JITFunction.run

    def compile_launch(self: JITFunction, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        # Only here: SGLang asks the driver what machine this is when it is imported.
        with patch.object(driver, "_active", _HopperDriver()):
            kernel = run(self, *args, grid=grid, warmup=True, **named)
        compiled.append(kernel)
        return kernel

    with patch.object(JITFunction, "run", compile_launch):
        yield compiled


@dataclass(frozen=True)
class KernelResources:
    """What a compiled kernel needs.

    Attributes:
        registers: Registers of a thread.
        spilled_bytes: Local memory of a thread, for registers that did not fit.
        shared_bytes: Shared memory of a program.
        warps: Warps of a program.
        loop: Instructions of a warp in the longest loop; 0 if there is none.
        wide_loads: Copies of 16 bytes to shared memory among them.
    """

    registers: int
    spilled_bytes: int
    shared_bytes: int
    warps: int
    loop: int
    wide_loads: int

    @property
    def fits(self) -> bool:
        """Return whether a multiprocessor can run the kernel without spilled registers."""
        return self.spilled_bytes == 0 and self.programs > 0

    @property
    def programs(self) -> int:
        """Return how many programs a multiprocessor runs at once."""
        registers = -(-self.registers // REGISTER_GRANULARITY) * REGISTER_GRANULARITY
        return min(
            MAX_WARPS // self.warps,
            REGISTERS // (registers * 32 * self.warps),
            (SHARED_BYTES + RESERVED_SHARED_BYTES) // (self.shared_bytes + RESERVED_SHARED_BYTES),
        )


def read_resources(kernel: Any) -> KernelResources:
    """Return what a compiled kernel needs, from its binary."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
        binary.write(kernel.asm["cubin"])
        binary.flush()
        usage = _run_tool("cuobjdump", "-res-usage", binary.name)
        assembly = _run_tool("nvdisasm", "-c", binary.name)
    counts = {name: int(number) for name, number in re.findall(r"(REG|STACK|LOCAL):(\d+)", usage)}
    loop = find_longest_loop(assembly)
    return KernelResources(
        registers=counts["REG"],
        spilled_bytes=counts["STACK"] + counts["LOCAL"],
        shared_bytes=int(kernel.metadata.shared),
        warps=int(kernel.metadata.num_warps),
        loop=len(loop),
        wide_loads=sum("LDGSTS" in line and ".128" in line for line in loop),
    )


def find_longest_loop(assembly: str) -> list[str]:
    """Return the instructions of the longest loop in a disassembly."""
    instructions: list[str] = []
    labels: dict[str, int] = {}
    longest: list[str] = []
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif instruction := _INSTRUCTION.match(line):
            instructions.append(instruction[1])
            branch = _BRANCH.search(line)
            # A branch to a label that has been met goes back; a program ends in one to itself.
            if branch and branch[1] in labels:
                loop = instructions[labels[branch[1]] :]
                longest = max(longest, loop if len(loop) > 1 else [], key=len)
    return longest


def _run_tool(name: str, *arguments: str) -> str:
    # A distribution's Triton may use the tools of CUDA.
    tool = _TOOLS / name if (_TOOLS / name).exists() else name
    command = [str(tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
