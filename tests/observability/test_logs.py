"""Lines of a log: whose request they belong to, and their form."""

import json
import logging
from collections.abc import Iterator

import pytest

from sglang_omni.observability.logs import set_up_logging
from sglang_omni.observability.trace import Trace, use_trace
from sglang_omni.system.loggers import OUTPUT_LOG
from tests.testing.logging_state import restore_logging


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with restore_logging():
        yield


def test_a_json_line_is_one_object_with_the_request_id(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("info", "json")
    with use_trace(Trace("abc")):
        logging.getLogger("sglang_omni.test").warning("two\nlines of %s", "text")
    logging.getLogger("sglang_omni.test").info("of nobody")
    OUTPUT_LOG.info("%s", "a word of its own", extra={"engine": "talker"})
    first, second, third = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["message"] == "two\nlines of text"
    assert (first["request_id"], first["level"]) == ("abc", "warning")
    assert first["time"].endswith("+00:00")
    assert "request_id" not in second
    assert (third["engine"], third["message"]) == ("talker", "a word of its own")


def test_a_text_line_has_the_request_id_too(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("warning", "text")
    with use_trace(Trace("abc")):
        logging.getLogger("sglang_omni.test").warning("here")
    logging.getLogger("sglang_omni.test").info("too quiet")
    logging.getLogger("sglang_omni.test").warning("there")
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("sglang_omni.test [abc]: here")
    assert second.endswith("sglang_omni.test: there")
    assert OUTPUT_LOG.handlers == []


def test_addresses_of_downloads_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("info", "text")
    logging.getLogger("httpx").info("GET https://example.com/private")
    assert capsys.readouterr().err == ""
