"""Large bodies: parsed or refused while nobody else waits, and forgotten when they are answered."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.http.request_body.json_scan import MAX_VALUES
from sglang_omni.protocol.body import MAX_MESSAGES
from tests.hostile.clients import CHAT, CHATS, bystander
from tests.hostile.process import MIB, Process, server_process

# Waits are judged.
pytestmark = pytest.mark.alone
BYTES = 30 * MIB
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    with server_process() as running:
        yield running


def chat(content: bytes, field: bytes = b"content") -> bytes:
    """A chat with `content`, which is JSON, in its one message."""
    message = b'{"role": "user", "content": "hello", "%s": %s}' % (field, content)
    return b'{"model": "org/ming", "messages": [%s]}' % message


def post(process: Process, body: bytes, path: str = CHATS, **headers: str) -> httpx.Response:
    """Send a body while others ask."""
    with bystander(process.served):
        return httpx.post(
            process.served.url + path, content=body, headers=JSON | headers, timeout=60
        )


def listed(value: bytes, size: int = BYTES) -> bytes:
    """A list of `value`, of about `size` bytes."""
    return b"[" + b",".join([value] * (size // (len(value) + 1))) + b"]"


TOO_MUCH: dict[str, tuple[bytes, str, str]] = {
    "empty lists": (chat(listed(b"[]")), "invalid_value", f"more than {MAX_VALUES} values"),
    "a million messages": (
        b'{"model": "m", "messages": %s}' % listed(b'{"role":"user","content":"a"}'),
        "invalid_value",
        f"more than {MAX_VALUES} values",
    ),
    "brackets": (b"[" * BYTES, "invalid_json", "deep"),
    "a few brackets": (b"[" * 2000 + b"]" * 2000, "invalid_json", "deep"),
    "names": (
        chat(b"{%s}" % b",".join(b'"%d":0' % number for number in range(2_000_000))),
        "invalid_value",
        f"more than {MAX_VALUES} values",
    ),
    "words": (chat(b'"%s"' % (b"hello there " * (BYTES // 12))), "context_length_exceeded", ""),
    "escapes": (chat(b'"%s"' % (b"\\u4e2d" * (BYTES // 6))), "context_length_exceeded", ""),
    "halves": (chat(b'"%s"' % (b"\\ud800" * (BYTES // 6))), "invalid_value", "surrogate"),
    "lines": (chat(listed(b'"%s"' % (b"x" * 4000))), "invalid_value", "not counting strings"),
    "blanks": (b" " * BYTES, "invalid_value", "not counting strings"),
    "digits": (chat(b"1" * BYTES), "invalid_value", "not counting strings"),
    "half a string": (b'{"a": "' + b"x" * BYTES, "invalid_value", "not counting strings"),
    "one name": (chat(b'{"%s": 1}' % (b"x" * BYTES)), "invalid_value", "a field name in it"),
    "messages": (
        b'{"model": "m", "messages": [%s]}'
        % b",".join([b'{"role":"user","content":"a"}'] * (MAX_MESSAGES + 1)),
        "invalid_value",
        "messages: List should have at most 4096 items",
    ),
    "arguments": (
        chat(
            listed(
                json.dumps(
                    {
                        "id": "a",
                        "function": {"name": "f", "arguments": '{"a":' + "[" * 10 + "]" * 10 + "}"},
                    }
                ).encode(),
                200_000,
            ),
            b"tool_calls",
        ),
        "invalid_value",
        "tool_calls",
    ),
    "model": (
        b'{"model": "%s", "messages": [{"role": "user", "content": "a"}]}' % (b"m" * BYTES),
        "model_not_found",
        "",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_is_refused_by_name_and_holds_nobody_up(process: Process, name: str) -> None:
    body, code, reason = TOO_MUCH[name]
    started = time.monotonic()
    answer = post(process, body)
    error = answer.json()["error"]
    assert answer.status_code in (400, 404), error
    assert error["code"] == code, error
    assert reason in error["message"]
    assert len(error["message"]) < 1100
    assert time.monotonic() - started < 10


def test_too_much_text_names_its_field(process: Process) -> None:
    part = {"type": "text", "text": "a" * 100_000}
    messages = [{"role": "user", "content": [part, part, part]}]
    error = post(process, json.dumps({**CHAT, "messages": messages}).encode()).json()["error"]
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "messages.0.content.2.text"


@pytest.mark.parametrize(
    "media", ["plain", "escaped", "unicode"], ids=["plain", "escaped slashes", "escaped plus"]
)
def test_a_video_is_served_however_its_base64_is_spelled(process: Process, media: str) -> None:
    spelled = {"plain": b"AAAA", "escaped": b"AA\\/A", "unicode": b"AAA\\u002B"}[media]
    uri = b"data:video/mp4;base64," + spelled * (90 * MIB // len(spelled))
    content = b'[{"type": "video_url", "video_url": {"url": "%s"}}, {"type": "text", "text": "a"}]'
    before = process.resident_bytes()
    body = b'{"model": "org/ming", "messages": [{"role": "user", "content": %s}]}' % (content % uri)
    answer = post(process, body)
    assert answer.status_code == 200, answer.text
    assert_forgotten(process, before)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_large_body_need_not_say_that_it_is_json(process: Process, content_type: str) -> None:
    body = {**CHAT, "images": ["data:image/png;base64," + "A" * MIB]}
    answer = post(process, json.dumps(body).encode(), **{"Content-Type": content_type})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("path", "fields", "file"),
    [
        ("/v1/audio/transcriptions", {"model": "org/ming"}, "file"),
        ("/v1/audio/voices", {"name": "me", "consent": "I agree"}, "audio_sample"),
    ],
)
def test_a_large_recording_is_taken_and_forgotten(
    process: Process, path: str, fields: dict[str, Any], file: str
) -> None:
    before = process.resident_bytes()
    with bystander(process.served):
        url = process.served.url + path
        files = {file: ("a.wav", b"\0" * 90 * MIB)}
        answer = httpx.post(url, data=fields, files=files, timeout=60)
    assert answer.status_code in (200, 201), answer.text
    assert_forgotten(process, before)


def test_a_book_is_looked_through_beside_the_loop(process: Process) -> None:
    body = {"model": "org/ming", "input": "Привет " * 500_000}
    answer = post(process, json.dumps(body).encode(), "/v1/audio/speech")
    assert answer.status_code == 400, answer.text


def assert_forgotten(process: Process, before: int) -> None:
    """The server's memory is what it was, but for what it keeps for the next request."""
    deadline = time.monotonic() + 5
    while (grown := process.resident_bytes() - before) > 100 * MIB:
        assert time.monotonic() < deadline, f"{grown >> 20} MiB more than before"
        time.sleep(0.1)
