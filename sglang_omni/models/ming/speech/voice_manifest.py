"""The manifest of a checkpoint's preset voices. Needs no torch: the API process reads it."""

from pathlib import Path
from typing import Any

from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

MANIFEST = Path("data", "voice_name.json")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the entries of a talker folder's manifest, by the name of their voice.

    Raises `CheckpointError` when the file is missing, malformed, or names no voice.
    """
    manifest = folder / MANIFEST
    entries = read_json(manifest)
    if not isinstance(entries, dict) or not entries:
        raise CheckpointError(f"{manifest} must map voice names to their prompts")
    return entries


def read_voice_names(checkpoint: Path) -> tuple[str, ...]:
    """Return the names of a checkpoint's preset voices; the first is the default.

    Raises `CheckpointError` as `read_manifest` does.
    """
    return tuple(read_manifest(checkpoint / "talker"))
