"""What unmodified clients asked of a real server over HTTP is still understood, or refused."""

from pathlib import Path

import httpx
import pytest

from tests.entrypoints.http.fake import EVERYTHING, FakeBackend
from tests.testing.recordings import recorded

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.jsonl"))


def test_every_client_was_recorded() -> None:
    assert [file.stem for file in RECORDINGS] == [
        *("instructor", "langchain", "litellm", "livekit", "openai", "openai_agents"),
        *("pipecat", "pydantic_ai", "wyoming"),
    ]


@pytest.mark.parametrize("file", RECORDINGS, ids=[file.stem for file in RECORDINGS])
def test_every_recorded_request_is_answered_as_it_was(
    file: Path, http: httpx.Client, backend: FakeBackend
) -> None:
    backend.capabilities = EVERYTHING
    # Of files only the length was kept.
    lines = [line for line in recorded(file) if "bytes" not in line]
    assert lines
    for line in lines:
        answer = http.request(line["method"], line["path"], json=line.get("json"))
        assert answer.status_code == line["status"], (line, answer.text)
