"""How the stretches between two attentions run: operation by operation, or compiled into few.

A model this small spends its time on starting operations, not on doing them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

import torch

Given = ParamSpec("Given")
Found = TypeVar("Found")


class Run(Protocol):
    """Calls a function with its arguments, in whatever way."""

    def __call__(
        self, function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
    ) -> Found: ...


def plainly(function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs) -> Found:
    """As it is written."""
    return function(*args, **kwargs)


class Compiled:
    """Compiles each function when it is first called; later calls run what was compiled.

    With `dynamic`, one compilation serves every number of rows.
    """

    def __init__(self, dynamic: bool, backend: str = "inductor") -> None:
        self._dynamic, self._backend = dynamic, backend
        self._compiled: dict[Callable[..., Any], Callable[..., Any]] = {}

    def __call__(
        self, function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
    ) -> Found:
        if function not in self._compiled:
            self._compiled[function] = torch.compile(
                function, dynamic=self._dynamic, backend=self._backend
            )
        found: Found = self._compiled[function](*args, **kwargs)
        return found


@dataclass(frozen=True)
class Regions:
    """`fixed` runs what always has as many rows, `varied` what has more or fewer in each step."""

    fixed: Run
    varied: Run


PLAIN = Regions(plainly, plainly)


def compiled(backend: str = "inductor") -> Regions:
    """Regions that are compiled on first use."""
    return Regions(Compiled(False, backend), Compiled(True, backend))
