"""What unmodified clients sent to a real server (`ci/clients/run.py`) is still understood."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.entrypoints.realtime.field_rules import EVENT_RULES
from sglang_omni.entrypoints.realtime.parsing import parse_event
from sglang_omni.protocol.compat.adapt import adapt
from tests.entrypoints.http.fake import hanging
from tests.entrypoints.realtime.harness import talking
from tests.testing import recordings

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.jsonl"))
# Where an event meets another moment of an answer than it met then.
TIMING = {"response_cancel_not_active", "conversation_already_has_active_response"}


def recorded(file: Path) -> list[dict[str, Any]]:
    """The client's events; their sound is silence of the length that it had."""
    events = recordings.recorded(file)
    for event in events:
        if event["type"] == "input_audio_buffer.append":
            size = event["audio"] // 4 * 3
            event["audio"] = base64.b64encode(bytes(size - size % 2)).decode()
    return events


def test_every_client_was_recorded() -> None:
    assert [file.stem for file in RECORDINGS] == ["agents", "livekit", "openai", "pipecat"]


@pytest.mark.parametrize("file", RECORDINGS, ids=[file.stem for file in RECORDINGS])
async def test_every_recorded_event_is_understood(file: Path) -> None:
    async with talking() as talk:
        talk.backend.script = hanging()
        for event in recorded(file):
            parse_event(adapt(EVENT_RULES, event).fields)
            if "item_id" in event:
                # It names an item that only the recorded server had.
                continue
            await talk.session.handle(json.dumps(event))
        errors = [e["error"] for e in talk.events if e["type"] == "error"]
        assert [error for error in errors if error["code"] not in TIMING] == []
        assert talk.of("session.updated")
