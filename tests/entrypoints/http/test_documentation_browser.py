"""`/docs` in headless Chromium, with every other host out of reach.

`ci/browser.sh` runs these: they need a Chromium.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sglang_omni.entrypoints.http.middleware.auth import Access
from tests.entrypoints.http.fake import FakeBackend, Served, serving
from tests.entrypoints.http.middleware.test_auth import KEY, keys
from tests.entrypoints.realtime.sounds import silence
from tests.testing.browser import MICROPHONE_HZ, Browser, browser, picture_of, recording

pytestmark = pytest.mark.timeout(60)

OPERATIONS = {
    "POST/v1/chat/completions",
    "POST/v1/audio/speech",
    "POST/v1/audio/speech/batch",
    "POST/v1/audio/normalize",
    "POST/v1/audio/transcriptions",
    "GET/v1/audio/voices",
    "GET/metrics",
    "GET/",
}


@pytest.fixture
def expect() -> Any:
    from playwright.sync_api import expect

    return expect


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[Browser]:
    """A Chromium, which may not complain: of a refused style or script, for instance."""
    with browser(recording(tmp_path / "microphone.wav", silence(1.0, MICROPHONE_HZ))) as running:
        yield running
    assert running.complaints == []


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with serving(Access(keys(KEY))) as served:
        yield served


def open_documentation(chromium: Browser, url: str) -> Any:
    """The page, whose requests to any other host fail the test."""
    page = chromium.open(f"{url}/docs")

    def only_here(route: Any) -> None:
        address = route.request.url
        if urlsplit(address).netloc == urlsplit(url).netloc:
            route.continue_()
        else:
            chromium.complaints.append(f"asked another host: {address}")
            route.abort()

    page.context.route(re.compile("^https?:"), only_here)
    page.reload()
    page.locator(".opblock").first.wait_for()
    return page


def operation(page: Any, name: str) -> Any:
    return page.locator(f".opblock:has(.opblock-summary-path[data-path='{name}'])").first


def execute(page: Any, name: str, file: Path | None = None) -> Any:
    """Send the example of an operation, with a file where it takes one; its place on the page."""
    block = operation(page, name)
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    if file is not None:
        block.locator("input[type=file]").set_input_files(file)
    block.get_by_role("button", name="Execute").click()
    return block


def test_every_operation_is_shown_without_any_other_host(chromium: Browser, server: Served) -> None:
    page = open_documentation(chromium, server.url)
    shown = {
        re.sub(r"\s", "", block.locator(".opblock-summary-method").inner_text())
        + block.locator(".opblock-summary-path").get_attribute("data-path")
        for block in page.locator(".opblock").all()
    }
    assert shown >= OPERATIONS
    picture_of(page, "docs")


def test_examples_are_sent_and_their_answers_shown(
    chromium: Browser, server: Served, expect: Any, tmp_path: Path
) -> None:
    page = open_documentation(chromium, server.url)
    heard = execute(page, "/v1/audio/transcriptions", tmp_path / "microphone.wav")
    expect(heard.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    chat = execute(page, "/v1/chat/completions")
    expect(chat.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(chat.locator(".live-responses-table")).to_contain_text("What is 17 + 25?")
    speech = execute(page, "/v1/audio/speech")
    sound = speech.locator("audio")
    expect(sound).to_be_attached()
    # The browser plays the bytes that came, though their header leaves the length open.
    heard = "sound => new Promise(done => { sound.onended = () => done(true); sound.play(); })"
    assert sound.evaluate(heard)
    assert len(server.backend.requests) == 3


def test_there_is_nothing_to_authorize_where_no_key_is_asked_for(
    chromium: Browser, server: Served, expect: Any
) -> None:
    page = open_documentation(chromium, server.url)
    expect(page.get_by_role("button", name="Authorize")).to_have_count(0)


def test_a_key_is_taken_and_sent(chromium: Browser, locked: Served, expect: Any) -> None:
    page = open_documentation(chromium, locked.url)
    locks = page.locator(".opblock:has(.authorization__btn) .opblock-summary-path")
    closed = {lock.get_attribute("data-path") for lock in locks.all()}
    assert {"/v1/chat/completions", "/metrics"} <= closed
    assert not closed & {"/", "/health", "/ready"}
    page.locator(".auth-wrapper .authorize").click()
    page.get_by_role("textbox").fill(KEY)
    page.get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close", exact=True).click()
    models = execute(page, "/v1/models")
    expect(models.locator(".live-responses-table")).to_contain_text(FakeBackend.model)
