"""The page offers what the model can do, as `/v1/models` tells; `ci/browser.sh` runs this."""

from typing import Any

import pytest

from tests.entrypoints.http.fake import FakeBackend, Served
from tests.testing.browser import Browser, barriers, picture_of

SMALL = {
    "speech_languages": ["en"],
    "speech_instructions": False,
    "speech_tasks": ["speech"],
    "starter_prompts": ["What is 17 + 25?", "Name three colours."],
}
FULL = {
    "speech_languages": ["zh", "en"],
    "speech_instructions": True,
    "speech_tasks": ["speech", "music", "sound"],
    "starter_prompts": ["What can you do?"],
}


def opened(
    chromium: Browser, server: Served, capabilities: dict[str, Any] | None, **options: Any
) -> Any:
    """The page of a server whose model has these capabilities; None for one that tells none."""
    card = {"id": "org/ming", "object": "model", "created": 0, "owned_by": "sglang-omni"}
    told = card if capabilities is None else {**card, "capabilities": capabilities}
    body = {"object": "list", "data": [told]}
    page = chromium.open(server.url, **options)
    page.route("**/v1/models", lambda route: route.fulfill(json=body))
    page.reload()
    page.locator("#voice option").first.wait_for(state="attached")
    return page


def starters(page: Any) -> Any:
    return page.get_by_role("group", name="Try one of these").get_by_role("button")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_empty_conversation_offers_prompts_that_are_sent(
    chromium: Browser, server: Served, backend: FakeBackend, expect: Any, scheme: str
) -> None:
    page = opened(chromium, server, SMALL, color_scheme=scheme)
    expect(starters(page)).to_have_text(SMALL["starter_prompts"])
    assert barriers(page) == []
    picture_of(page, f"starters_{scheme}")
    starters(page).last.click()
    turns = page.locator("#chat-log article")
    expect(turns).to_have_text(["YouName three colours.", "AnswerName three colours. "])
    expect(starters(page)).to_have_count(0)
    assert backend.requests[-1].messages[-1].content[0].text == "Name three colours."
    page.get_by_role("button", name="New conversation").click()
    expect(starters(page)).to_have_count(2)


def test_prompts_fit_a_phone(chromium: Browser, server: Served, expect: Any) -> None:
    long = {**SMALL, "starter_prompts": ["Tell me of the mill by the river, slowly. " * 3] * 6}
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = opened(chromium, server, long, **phone)
    expect(starters(page)).to_have_count(6)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    picture_of(page, "starters_phone")
    starters(page).last.tap()
    expect(page.locator("#chat-log .answer")).to_contain_text("mill")


def test_styles_are_offered_only_where_the_model_follows_them(
    chromium: Browser, server: Served, backend: FakeBackend, expect: Any
) -> None:
    page = opened(chromium, server, SMALL)
    page.get_by_role("tab", name="Read aloud").click()
    for field in ("Style, in words", "Emotion", "Dialect", "Pace", "Pitch", "Volume"):
        expect(page.get_by_label(field)).to_be_hidden()
    expect(page.get_by_text("The model speaks English.")).to_be_visible()
    assert barriers(page) == []
    picture_of(page, "read_small")
    page.get_by_label("Playback speed").fill("1.5")
    page.get_by_label("Text", exact=True).fill("One two.")
    page.get_by_role("button", name="Read aloud").click()
    expect(page.locator("#read-state")).to_have_text("Done")
    assert backend.requests[-1].style.instruction is None


def test_only_the_fields_of_a_style_that_the_model_follows_are_offered(
    chromium: Browser, server: Served, expect: Any
) -> None:
    page = opened(chromium, server, {**FULL, "instruction_fields": ["speed", "pitch"]})
    page.get_by_role("tab", name="Read aloud").click()
    for field in ("Pace", "Pitch"):
        expect(page.get_by_label(field)).to_be_visible()
    for field in ("Style, in words", "Emotion", "Dialect", "Volume"):
        expect(page.get_by_label(field)).to_be_hidden()
    assert barriers(page) == []


@pytest.mark.parametrize("clones", [True, False])
def test_a_voice_is_recorded_only_where_the_model_speaks_in_it(
    chromium: Browser, server: Served, expect: Any, clones: bool
) -> None:
    page = opened(chromium, server, {**FULL, "voice_cloning": clones})
    page.get_by_role("tab", name="Voices").click()
    expect(page.get_by_role("heading", name="Presets")).to_be_visible()
    expect(page.get_by_role("heading", name="Your voices")).to_have_count(int(clones))
    expect(page.get_by_role("button", name="Record", exact=True)).to_have_count(int(clones))
    assert barriers(page) == []


@pytest.mark.parametrize("capabilities", [FULL, None])
def test_what_a_model_can_do_is_offered_whole(
    chromium: Browser, server: Served, expect: Any, capabilities: dict[str, Any] | None
) -> None:
    page = opened(chromium, server, capabilities)
    expect(starters(page)).to_have_count(0 if capabilities is None else 1)
    page.get_by_role("tab", name="Read aloud").click()
    expect(page.get_by_label("Style, in words")).to_be_visible()
    hint = page.get_by_text("The model speaks Chinese and English.")
    expect(hint).to_have_count(0 if capabilities is None else 1)
