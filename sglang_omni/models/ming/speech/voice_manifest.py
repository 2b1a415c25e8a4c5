"""The manifest of the preset voices of a checkpoint. Needs no torch: the API process reads it."""

from pathlib import Path
from typing import Any

from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

MANIFEST = Path("data", "voice_name.json")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the entries of the manifest in a talker folder, by voice name.

    Raises:
        CheckpointError: The file is missing or malformed, or has no voices.
    """
    manifest = folder / MANIFEST
    entries = read_json(manifest)
    if not isinstance(entries, dict) or not entries:
        raise CheckpointError(f"{manifest} must map voice names to their prompts")
    return entries


def read_voice_names(checkpoint: Path) -> tuple[str, ...]:
    """Return the names of a checkpoint's preset voices; the first is the default.

    Raises:
        CheckpointError: See `read_manifest`.
    """
    return tuple(read_manifest(checkpoint / "talker"))
