"""Reading the JSON files of a checkpoint."""

import json
from pathlib import Path
from typing import Any

from sglang_omni.protocol.errors import CheckpointError


def read_json(path: Path) -> Any:
    """Parse a JSON file. Raises `CheckpointError` when it is missing or malformed."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from None
