"""From the architecture that a checkpoint names to its model family.

A family of this package is one row and one folder. Another package brings one by an entry point of
the group `sglang_omni.models`: its name is the architecture, its value the `ModelFamily`.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from sglang_omni.models.base import ModelFamily
from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

GROUP = "sglang_omni.models"
FAMILIES = {"BailingMM2NativeForConditionalGeneration": "sglang_omni.models.ming.family:FAMILY"}


def family_of(checkpoint: Path) -> ModelFamily:
    """Return the family of the checkpoint in a folder.

    Raises:
        CheckpointError: `config.json` is missing or malformed, or names no known architecture.
    """
    path = checkpoint / "config.json"
    architectures = read_json(path).get("architectures") or []
    for architecture in architectures:
        if entry := _entries().get(architecture):
            return _load(entry)
    named = ", ".join(architectures) or "none"
    raise CheckpointError(
        f"{path}: architecture {named} is not served; known: {', '.join(sorted(_entries()))}"
    )


def default_family() -> ModelFamily:
    """Return the family of the bundled checkpoint."""
    return _load(_entries()[next(iter(FAMILIES))])


@cache
def _entries() -> dict[str, EntryPoint]:
    """Return every known family by architecture; one of this package wins."""
    own = [EntryPoint(name, value, GROUP) for name, value in FAMILIES.items()]
    return {entry.name: entry for entry in (*entry_points(group=GROUP), *own)}


@cache
def _load(entry: EntryPoint) -> ModelFamily:
    family: ModelFamily = entry.load()
    return family
