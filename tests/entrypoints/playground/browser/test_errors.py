"""What the page says when something fails, in headless Chromium; `ci/browser.sh` runs this.

Every message must be where the user looks: beside the composer, and on a phone within the screen.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from sglang_omni.pipeline.request import Event, Finished, TextDelta
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from tests.entrypoints.http.fake import USAGE, FakeBackend, Served, hanging, playing, serving
from tests.entrypoints.realtime.sounds import silence
from tests.testing.browser import (
    MICROPHONE_HZ,
    Browser,
    ask,
    barriers,
    browser,
    choose,
    picture_of,
    recording,
)

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
AWAY = "The server does not answer. Reconnecting…"
BAD_FILE = "messages.0.content.0.image_url.url"
UNKNOWN_FORMAT = "is not an image in a supported format (PNG, JPEG)"


@pytest.fixture
def forgiven(chromium: Browser) -> Iterator[None]:
    """The browser itself complains of what does not load; here that is part of the test."""
    yield
    chromium.close_pages()
    loads = ("Failed to load resource", "WebSocket connection")
    unforeseen = [text for text in chromium.complaints if not any(word in text for word in loads)]
    assert unforeseen == []
    chromium.complaints.clear()


@contextmanager
def then_away(chromium: Browser, expect: Any, **options: Any) -> Iterator[Any]:
    """A page whose server has gone, and what brings the server back on the same port."""
    with serving() as served:
        page = chromium.open(served.url, **options)
        expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
        port = httpx.URL(served.url).port
        assert port is not None
    yield page, lambda: serving(port=port)


def refuse_file(backend: FakeBackend) -> None:
    """Answer as the server does to a file that it cannot read."""
    error = InvalidRequest(f"{BAD_FILE}: {UNKNOWN_FORMAT}", param=BAD_FILE)
    backend.script = playing(then=error)


async def failing_late(request: Any) -> AsyncGenerator[Event, None]:
    """Refuse a request after half a second."""
    await asyncio.sleep(0.5)
    raise EngineFailed("no")
    yield


def attach(page: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no picture")
    page.locator("#chat-picker").set_input_files([tmp_path / name])


def test_talk_with_a_server_that_is_away_says_so_until_it_is_back(
    chromium: Browser, expect: Any, forgiven: None
) -> None:
    with then_away(chromium, expect) as (page, back):
        start = page.get_by_role("button", name="Talk", exact=True)
        start.click()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("The server does not answer.")
        expect(alert).to_be_in_viewport(ratio=1)
        expect(page.locator("#talk-state")).to_have_count(0)
        expect(page.get_by_role("status").filter(has_text=AWAY)).to_be_in_viewport(ratio=1)
        assert barriers(page) == []
        picture_of(page, "away_talk")
        with back():
            expect(page.get_by_text(AWAY)).to_have_count(0)
            start.click()
            expect(page.locator("#talk-state")).to_have_text("Listening")
            expect(alert).to_be_hidden()
            page.get_by_role("button", name="End", exact=True).click()


@pytest.mark.parametrize("spoken", [True, False])
def test_a_message_to_a_server_that_is_away_is_kept_and_sent_when_it_is_back(
    chromium: Browser, expect: Any, forgiven: None, spoken: bool
) -> None:
    with then_away(chromium, expect, **PHONE) as (page, back):
        page.get_by_label("Speak", exact=True).set_checked(spoken)
        ask(page, "Are you there?")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("The server does not answer.")
        expect(alert).to_be_in_viewport(ratio=1)
        expect(page.get_by_text(AWAY)).to_be_in_viewport(ratio=1)
        expect(page.get_by_label("Message")).to_have_value("Are you there?")
        picture_of(page, f"away_phone_{'spoken' if spoken else 'written'}")
        with back():
            expect(page.get_by_text(AWAY)).to_have_count(0)
            page.get_by_role("button", name="Send").tap()
            expect(page.locator("#chat-log .answer")).to_contain_text("Are you there?")
            expect(page.locator("#chat-log .answer")).to_have_attribute("aria-busy", "false")


def test_a_server_that_goes_is_missed_before_anything_is_asked(
    chromium: Browser, expect: Any, forgiven: None
) -> None:
    with then_away(chromium, expect) as (page, back):
        expect(page.get_by_text(AWAY)).to_be_visible()
        with back():
            expect(page.get_by_text(AWAY)).to_have_count(0)


def test_a_session_whose_server_goes_is_over(
    chromium: Browser, expect: Any, forgiven: None
) -> None:
    with serving() as served:
        page = chromium.open(served.url)
        choose(page, Push_to_talk=True)
        page.get_by_role("button", name="Talk", exact=True).click()
        expect(page.locator("#talk-state")).to_have_text("Listening")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text(AWAY)).to_be_visible()
    expect(page.locator("#talk-state")).to_have_count(0)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("NotFoundError", "There is no microphone"),
        ("NotReadableError", "another program may use it"),
        ("AbortError", "The microphone cannot be opened: as the browser said"),
    ],
)
def test_a_microphone_that_cannot_be_had_comes_with_advice(
    chromium: Browser, server: Served, expect: Any, error: str, advice: str
) -> None:
    page = chromium.open(server.url, **PHONE)
    page.evaluate(
        """name => {
            const error = new DOMException("as the browser said", name);
            navigator.mediaDevices.getUserMedia = () => Promise.reject(error);
        }""",
        error,
    )
    page.get_by_role("button", name="Talk", exact=True).tap()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(advice)
    expect(alert).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Talk", exact=True)).to_be_enabled()
    assert barriers(page) == []


def test_a_microphone_that_is_not_allowed_comes_with_advice(
    server: Served, expect: Any, tmp_path: Path
) -> None:
    sound = recording(tmp_path / "microphone.wav", silence(1.0, MICROPHONE_HZ))
    with browser(sound, allowed=False) as chromium:
        page = chromium.open(server.url, **PHONE)
        page.get_by_role("button", name="Talk", exact=True).tap()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("Allow it in the browser's settings for this site")
        expect(alert).to_be_in_viewport(ratio=1)
        expect(page.locator("#talk-state")).to_have_count(0)
        picture_of(page, "phone_not_allowed")
        assert chromium.complaints == []


def test_an_error_is_on_a_phones_screen_beside_the_composer(
    chromium: Browser, server: Served, backend: FakeBackend, expect: Any
) -> None:
    page = chromium.open(server.url, **PHONE)
    send = page.get_by_role("button", name="Send")
    for number in range(4):
        ask(page, f"question {number} " * 20)
        expect(page.locator("#chat-log .answer")).to_have_count(number + 1)
        expect(send).to_be_enabled()
    backend.script = playing(TextDelta("I was "), then=EngineFailed("the thinker died"))
    send.scroll_into_view_if_needed()
    ask(page, "And now?")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("the thinker died")
    expect(alert).to_be_in_viewport(ratio=1)
    box, composer = alert.bounding_box(), page.get_by_label("Message").bounding_box()
    assert 0 < composer["y"] - box["y"] < 200
    assert barriers(page) == []
    page.screenshot(path=picture_of(page, "phone_error").with_stem("phone_error_screen"))


@pytest.mark.parametrize("tab", ["Read aloud", "Voices"])
def test_errors_of_forms_are_on_a_phones_screen(
    chromium: Browser,
    server: Served,
    backend: FakeBackend,
    expect: Any,
    tmp_path: Path,
    tab: str,
    forgiven: None,
) -> None:
    page = chromium.open(server.url, **PHONE)
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    page.get_by_role("tab", name=tab).tap()
    if tab == "Voices":
        (tmp_path / "empty.wav").touch()
        page.get_by_label("Recording").set_input_files(tmp_path / "empty.wav")
        page.get_by_label("Name").fill("nobody")
        page.get_by_label("The speaker agrees").check()
        page.get_by_role("button", name="Clone").tap()
        message = "The recording: the medium is empty"
    else:
        backend.script = playing(then=InvalidRequest("input: too odd", param="input"))
        page.get_by_label("Text", exact=True).fill("hm")
        page.get_by_role("button", name="Read aloud").tap()
        message = "Text: too odd"
    expect(page.get_by_role("alert")).to_have_text(message)
    expect(page.get_by_role("alert")).to_be_in_viewport(ratio=1)


def test_a_rejected_file_is_named_and_a_new_conversation_is_rid_of_it(
    page: Any, backend: FakeBackend, expect: Any, tmp_path: Path, forgiven: None
) -> None:
    refuse_file(backend)
    attach(page, tmp_path, "bad.png")
    ask(page, "What is this?")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text(f"bad.png {UNKNOWN_FORMAT}")
    # It can be changed and sent again.
    message, files = page.get_by_label("Message"), page.locator("#chat-files li")
    expect(message).to_have_value("What is this?")
    expect(files).to_have_count(1)
    picture_of(page, "rejected_file")
    page.get_by_role("button", name="New conversation").click()
    expect(message).to_have_value("")
    expect(files).to_have_count(0)
    expect(alert).to_be_hidden()
    backend.script = playing(TextDelta("Hello."), Finished("stop", USAGE))
    ask(page, "Hi.")
    expect(page.locator("#chat-log .answer")).to_contain_text("Hello.")
    assert len(backend.requests[-1].messages) == 1


def test_what_a_refused_message_gives_back_does_not_replace_the_next_draft(
    page: Any, backend: FakeBackend, expect: Any, forgiven: None
) -> None:
    backend.script = failing_late
    ask(page, "first")
    page.get_by_label("Message").fill("second")
    expect(page.get_by_label("Message")).to_have_value("first\nsecond")


def test_a_message_on_its_way_does_not_come_back_into_a_new_conversation(
    page: Any, backend: FakeBackend, expect: Any
) -> None:
    backend.script = hanging()
    ask(page, "first")
    backend.wait_running(1, 5)
    page.get_by_role("button", name="New conversation").click()
    backend.wait_running(0, 5)
    page.wait_for_timeout(200)
    expect(page.get_by_label("Message")).to_have_value("")
    expect(page.locator("#chat-log article")).to_have_count(0)
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
