"""What users send, and their keys, are in no log."""

import logging
import time
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from sglang_omni.engines.runtime.failure import as_omni_error
from sglang_omni.observability.logs import RequestIdFilter
from sglang_omni.pipeline.request import Event, TextDelta
from sglang_omni.protocol.errors import EngineFailed, safe_traceback
from tests.entrypoints.http.fake import FakeBackend, words

SECRET = "heron-of-the-river"
CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": SECRET}]}


async def quote(request: Any) -> AsyncGenerator[Event, None]:
    """Fails with an error that quotes the user, and another behind it."""
    try:
        raise LookupError(words(request))
    except LookupError as error:
        raise KeyError(words(request)) from error
    yield  # Makes it a generator.


async def break_off(request: Any) -> AsyncGenerator[Event, None]:
    yield TextDelta("a")
    raise EngineFailed(f"cannot say {words(request)}")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("script", [quote, break_off])
def test_no_log_quotes_a_user_or_shows_a_key(
    http: httpx.Client,
    backend: FakeBackend,
    caplog: pytest.LogCaptureFixture,
    script: Any,
    stream: bool,
) -> None:
    backend.script = script
    with caplog.at_level(logging.INFO):
        key = {"Authorization": f"Bearer {SECRET}"}
        http.post("/v1/chat/completions", json={**CHAT, "stream": stream}, headers=key)
        http.post("/v1/chat/completions", json={**CHAT, SECRET: SECRET}, headers=key)
        http.post("/v1/chat/completions", content=SECRET, headers=key)
    ours = [record for record in caplog.records if record.name.startswith("sglang_omni")]
    assert ours
    assert not any(SECRET in record.getMessage() for record in ours)
    assert not any(record.exc_info for record in ours)


def test_an_error_is_told_by_its_kind_and_its_place() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        told = safe_traceback(error)
    assert told.startswith("ValueError\n")
    assert "test_logs.py" in told
    assert SECRET not in told


def test_an_engine_logs_no_message_either(caplog: pytest.LogCaptureFixture) -> None:
    as_omni_error(KeyError(SECRET))
    assert "KeyError" in caplog.text
    assert SECRET not in caplog.text


def test_every_request_leaves_a_line_with_its_id_and_nothing_of_its_content(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(RequestIdFilter())
    with caplog.at_level(logging.INFO, "sglang_omni.access"):
        chat = http.post("/v1/chat/completions", json=CHAT)
        lost = http.get(f"/v1/nowhere/{SECRET}?{SECRET}")
        assert line_of(chat, caplog).startswith("POST /v1/chat/completions 200 in ")
        assert line_of(lost, caplog).startswith("GET unmatched 404")


def line_of(reply: httpx.Response, caplog: pytest.LogCaptureFixture) -> str:
    """The line of a request; its writer may be behind the reply, and behind later requests."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for record in list(caplog.records):
            if record.__dict__["request_id"] == reply.headers["x-request-id"]:
                return record.getMessage()
        time.sleep(0.01)
    raise AssertionError("the request left no line")
