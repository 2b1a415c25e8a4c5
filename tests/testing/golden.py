"""Reading golden vectors, with their own tolerances.

`tests/goldens` holds the tiny checkpoint and the cases that fit the repository. The full set is
read as well where it is present: `$SGLANG_OMNI_GOLDENS`, or `shared/goldens` beside the checkout.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

GOLDENS = Path(__file__).parents[1] / "goldens"
TINY = GOLDENS / "tiny_checkpoint"
FULL_SET = Path(os.environ.get("SGLANG_OMNI_GOLDENS", GOLDENS.parents[2] / "shared" / "goldens"))
ROOTS = (GOLDENS, FULL_SET)
# The cases of the full set in the areas that tests read, one a line.
ALL_CASES = (GOLDENS / "cases.txt").read_text(encoding="utf-8").split()
FULL_SET_ONLY = "lies in the full set of goldens only"
# Cases of the full set that tests of this process would run, and that are not here.
missing_cases: set[str] = set()


@dataclass(frozen=True)
class Case:
    """One golden case: its description and its tensors."""

    name: str
    info: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.tensors[name]

    def tolerance(self, tensor: str) -> float:
        """Largest allowed max|a-b| / max|expected| for a tensor of this case."""
        special = self.info.get("tensor_tolerance", {})
        return special.get(tensor, self.info["tolerance"]["value"])

    def check(self, tensor: str, actual: torch.Tensor) -> None:
        """Assert that `actual` agrees with the stored tensor within its tolerance."""
        assert_close(actual, self.tensors[tensor], self.tolerance(tensor), f"{self.name}:{tensor}")


def require_case(name: str) -> None:
    """Skip the test where a case is not here."""
    if not any((root / name / "case.json").exists() for root in ROOTS):
        pytest.skip(f"{name} {FULL_SET_ONLY}")


def load_case(name: str) -> Case:
    """Load `area/case`, for example `talker/cfm_0`."""
    folder = next(root / name for root in ROOTS if (root / name / "case.json").exists())
    info = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    data = folder / "data.safetensors"
    return Case(name, info, load_file(data) if data.exists() else {})


def file_of(name: str) -> Path:
    """An input file of a case, such as `vision/files/image_2.png`.

    A small case may lie in the repository without it; the test is then skipped.
    """
    found = [root / name for root in ROOTS if (root / name).exists()]
    if not found:
        pytest.skip(f"{name} {FULL_SET_ONLY}")
    return found[0]


def cases(area: str, prefix: str = "", *, required: bool = True) -> list[str]:
    """Names of the available cases of an area, sorted; at least one if that is required."""
    found = {
        f"{area}/{path.parent.name}"
        for root in ROOTS
        for path in (root / area).glob(f"{prefix}*/case.json")
    }
    assert found or not required, f"no golden cases {area}/{prefix}*"
    expected = {name for name in ALL_CASES if name.startswith(f"{area}/{prefix}")}
    missing_cases.update(expected - found)
    return sorted(found)


def summarize_missing(num_skipped: int, num_cases: int) -> str:
    """Return the line that ends a run in which goldens were missing, empty where none were."""
    if not num_skipped and not num_cases:
        return ""
    return (
        f"goldens: {num_skipped} tests skipped and {num_cases} cases left out, "
        "which need the full set ($SGLANG_OMNI_GOLDENS)"
    )


def assert_close(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: float, name: str = "tensor"
) -> None:
    """Floats: max|a-b| / max|expected| within tolerance. Integers: equal."""
    assert actual.shape == expected.shape, f"{name}: {list(actual.shape)} != {list(expected.shape)}"
    if not expected.is_floating_point():
        assert torch.equal(actual, expected), f"{name}: values differ"
        return
    scale = expected.abs().max().clamp_min(1e-30)
    error = ((actual.double() - expected.double()).abs().max() / scale).item()
    assert error <= tolerance, f"{name}: relative error {error:.2e} > {tolerance:.0e}"
