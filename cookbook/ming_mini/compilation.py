"""Run parts of a training step eagerly, or compiled into few kernels.

A model this small spends its time on launching operations, not on computing them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

import torch
import torch._dynamo
import torch._inductor.config
from torch._inductor.choices import InductorChoices
from torch._inductor.virtualized import V

Given = ParamSpec("Given")
Found = TypeVar("Found")

RECOMPILE_LIMIT = 64
"""Compilations of one function, for its shapes and modes; after PyTorch's own 8 it runs eagerly."""


LONGEST_ROW = 1024
"""Numbers of a row that are summed at once, in a GPU's registers."""


class WholeRows(InductorChoices):
    """Sum rows of up to `LONGEST_ROW` numbers at once, which PyTorch else does in several loops.

    A later loop reads what an earlier one has stored, and nothing waits for the stores: PyTorch
    2.11 has no barrier there, and Triton 3.6 may give numbers to other threads than those that
    stored them. Gradients through two norms in a row were wrong by a factor of a thousand.
    """

    @staticmethod
    def should_use_persistent_reduction(features: Any, cooperative_reduction: bool) -> bool:
        """Return whether a kernel keeps its rows in registers."""
        return bool(V.graph.sizevars.statically_known_leq(features.reduction_numel, LONGEST_ROW))


class Runner(Protocol):
    """Calls a function with its arguments."""

    def __call__(
        self, function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
    ) -> Found:
        """Return the result of the function for these arguments."""


def run_eager(function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs) -> Found:
    """Run the function as it is."""
    return function(*args, **kwargs)


class Compiled:
    """Compile each function on its first call; later calls run the compiled code.

    With `dynamic`, one compilation serves every number of rows.
    """

    def __init__(self, dynamic: bool, backend: str = "inductor") -> None:
        torch._dynamo.config.recompile_limit = RECOMPILE_LIMIT
        torch._inductor.config.inductor_choices_class = WholeRows
        # PyTorch fuses sums over rows with sums over columns since 2.10, and has dropped sums that
        # are parts of one tensor (github.com/pytorch/pytorch/issues/193061).
        torch._inductor.config.triton.mix_order_reduction = False
        self._dynamic, self._backend = dynamic, backend
        self._compiled: dict[Callable[..., Any], Callable[..., Any]] = {}

    def __call__(
        self, function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
    ) -> Found:
        """Compile the function if it is new, and return its result for these arguments."""
        if function not in self._compiled:
            self._compiled[function] = torch.compile(
                function, dynamic=self._dynamic, backend=self._backend
            )
        found: Found = self._compiled[function](*args, **kwargs)
        return found


def choose_runner(compiled: bool, device: torch.device, *, dynamic: bool = False) -> Runner:
    """Return a runner that compiles, if `compiled` and on a GPU, or an eager one.

    It compiles for each shape or, if `dynamic`, once for all.
    """
    return Compiled(dynamic) if compiled and device.type == "cuda" else run_eager


@dataclass(frozen=True)
class Regions:
    """The runners of a step.

    `fixed` is for a constant number of rows, `varied` for numbers that vary.
    """

    fixed: Runner
    varied: Runner


EAGER = Regions(run_eager, run_eager)


def compiled_regions(backend: str = "inductor") -> Regions:
    """Return regions that are compiled on first use."""
    return Regions(Compiled(False, backend), Compiled(True, backend))
