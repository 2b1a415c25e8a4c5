"""Model families that the suites of the pipeline, the API and the realtime API can run on."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sglang_omni.models import registry
from sglang_omni.models.pending_call import CALL, CALL_CLOSE
from sglang_omni.protocol.tools import ToolCall
from tests.testing.golden import TINY
from tests.testing.toy_checkpoint import (
    ARCHITECTURE,
    ENTRY,
    install_entry_point,
    write_toy_checkpoint,
)

VARIABLE = "SGLANG_OMNI_TEST_FAMILY"
FAMILIES = {
    "ming": f"{__name__}:open_ming",
    "toy": f"{__name__}:register_toy",
    "toy-entry-point": f"{__name__}:install_toy",
}
WITHOUT_RULES = "the family reads text as it is"
"""Why tests of rules for reading are skipped on a family without them."""
SUITES = ("tests/pipeline", "tests/entrypoints/http", "tests/entrypoints/realtime")


def write_tagged_call(call: ToolCall) -> str:
    """Return a call in the form that `sglang_omni/models/tool_calls.py` reads."""
    return f'{CALL}\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n{CALL_CLOSE}'


@dataclass(frozen=True)
class FamilyUnderTest:
    """A checkpoint, whose architecture tells the family, and what no interface tells of it.

    Attributes:
        checkpoint: A folder with `config.json` and `tokenizer.json`; small, for a CPU.
        write_call: Returns how the model writes a call in its answer, its special tokens by their
            names; None for a model that calls no functions.
    """

    checkpoint: Path
    write_call: Callable[[ToolCall], str] | None = write_tagged_call


def open_ming(folder: Path) -> FamilyUnderTest:
    """Return Ming, which is in the registry, with its tiny checkpoint."""
    return FamilyUnderTest(TINY)


def register_toy(folder: Path) -> FamilyUnderTest:
    """Add the toy family to the registry."""
    registry.FAMILIES[ARCHITECTURE] = ENTRY
    return FamilyUnderTest(write_toy_checkpoint(folder / "checkpoint"))


def install_toy(folder: Path) -> FamilyUnderTest:
    """Install a package with an entry point for the toy family, for child processes as well."""
    packages = str(install_entry_point(folder / "packages"))
    sys.path.append(packages)
    inherited = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{inherited}:{packages}".removeprefix(":")
    return FamilyUnderTest(write_toy_checkpoint(folder / "checkpoint"))
