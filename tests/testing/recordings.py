"""What unmodified clients sent to a real server, kept by `ci/clients/run.py --record`."""

import json
from pathlib import Path
from typing import Any

from tests.entrypoints.http.fake import FakeBackend

# The names of things in the recorded server, in terms of the fake one.
NAMES = {"ming-omni": FakeBackend.model, "DB30": "river", "alloy": "nova"}


def recorded(file: Path) -> list[dict[str, Any]]:
    """The lines of a recording, as a client of the fake server would have sent them."""
    text = file.read_text(encoding="utf-8")
    for there, here in NAMES.items():
        text = text.replace(json.dumps(there), json.dumps(here))
    return [json.loads(line) for line in text.splitlines()]
