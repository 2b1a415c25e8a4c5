"""The frame of the page: what is in view, keys, languages; in headless Chromium."""

from typing import Any

import pytest

from sglang_omni.pipeline.request import AudioDelta, Finished
from tests.entrypoints.http.fake import USAGE, FakeBackend, Served, playing, tone
from tests.testing.browser import Browser, ask, barriers, choose, open_settings, picture_of

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("device", ["desktop", "phone"])
def test_the_composer_is_always_in_view(
    chromium: Browser, server: Served, expect: Any, device: str
) -> None:
    page = chromium.open(server.url, **(PHONE if device == "phone" else {}))
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    for number in range(1, 5):
        ask(page, f"question {number} " * 60)
        answers = page.locator("#chat-log .answer")
        expect(answers).to_have_count(number)
        expect(answers.last).to_have_attribute("aria-busy", "false")
        for name in ("Send", "Talk"):
            button = page.get_by_role("button", name=name, exact=True)
            expect(button).to_be_in_viewport(ratio=1)
    # The log follows what is added, and the page itself does not scroll.
    expect(answers.last.get_by_role("button", name="Copy")).to_be_in_viewport()
    height, scroll = page.evaluate("[innerHeight, document.documentElement.scrollHeight]")
    assert scroll <= height


def test_the_end_of_the_log_stays_in_view_when_the_log_gets_smaller(page: Any, expect: Any) -> None:
    """As it does when captions or a keyboard on the screen appear."""
    ask(page, "question " * 300)
    answer = page.locator("#chat-log .answer")
    expect(answer).to_have_attribute("aria-busy", "false")
    last = answer.get_by_role("button", name="Copy")
    page.set_viewport_size({"width": 1280, "height": 500})
    expect(last).to_be_in_viewport(ratio=1)
    # A user who reads what is above is left there.
    page.locator("#chat-log").hover()
    page.mouse.wheel(0, -400)
    expect(last).not_to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 400})
    page.wait_for_timeout(300)
    expect(last).not_to_be_in_viewport()


def test_keys_reach_what_is_used_most(page: Any, expect: Any, backend: FakeBackend) -> None:
    choose(page, Push_to_talk=True)
    message = page.get_by_label("Message")
    page.get_by_role("tab", name="Voices").click()
    page.keyboard.press("/")
    expect(message).to_be_focused()
    expect(page.get_by_role("tab", selected=True)).to_have_text("Conversation")
    page.keyboard.press("Alt+h")
    expect(page.get_by_role("dialog", name="History")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+s")
    settings = page.get_by_role("dialog", name="Settings")
    expect(settings.get_by_text("Write a message")).to_be_visible()
    page.keyboard.press("Escape")
    expect(settings).to_be_hidden()
    ask(page, "hello")
    expect(page.locator("#chat-log article")).to_have_count(2)
    page.keyboard.press("Alt+n")
    expect(page.locator("#chat-log article")).to_have_count(0)
    page.keyboard.press("Alt+t")
    expect(page.locator("#talk-state")).to_be_visible()
    page.keyboard.press("Alt+t")
    expect(page.locator("#talk-state")).to_have_count(0)
    backend.script = playing(
        *(AudioDelta(tone()) for _ in range(50)), Finished("stop", USAGE), pause=0.1
    )
    ask(page, "Speak.")
    expect(page.locator("#chat-log .answer")).to_have_attribute("aria-busy", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#chat-log .answer")).to_contain_text("Stopped.")


def test_the_keyboard_is_at_the_message_soon(page: Any, expect: Any) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the message")).to_be_in_viewport()
    assert barriers(page) == []
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message")).to_be_focused()
    # So is it after a new conversation.
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_label("Message")).to_be_focused()


@pytest.mark.parametrize("locale", ["zh-CN", "de-DE"])
def test_the_page_speaks_the_users_language_if_it_can(
    chromium: Browser, server: Served, expect: Any, locale: str
) -> None:
    page = chromium.open(server.url, locale=locale)
    is_chinese = locale == "zh-CN"
    expect(page.get_by_role("tab", selected=True)).to_have_text(
        "对话" if is_chinese else "Conversation"
    )
    assert page.evaluate("document.documentElement.lang") == ("zh" if is_chinese else "en")


def test_another_language_is_chosen_and_kept(page: Any, expect: Any) -> None:
    drawer = open_settings(page)
    drawer.get_by_label("Language of the page").select_option("zh")
    page.keyboard.press("Escape")
    for name in ("对话", "朗读", "音色"):
        page.get_by_role("tab", name=name).click()
        assert barriers(page) == []
        picture_of(page, f"chinese_{('对话', '朗读', '音色').index(name)}")
    page.reload()
    expect(page.get_by_role("tab", name="朗读")).to_be_visible()
    page.get_by_role("button", name="设置").click()
    page.get_by_label("页面语言").select_option("en")
    expect(page.get_by_role("tab", name="Read aloud")).to_be_visible()


def test_settings_are_kept(page: Any, expect: Any) -> None:
    drawer = open_settings(page)
    drawer.get_by_label("Instructions to the model").fill("Be kind.")
    drawer.get_by_label("Temperature").fill("0.3")
    assert barriers(page) == []
    picture_of(page, "settings")
    page.keyboard.press("Escape")
    page.reload()
    drawer = open_settings(page)
    expect(drawer.get_by_label("Instructions to the model")).to_have_value("Be kind.")
    expect(drawer.get_by_label("Temperature")).to_have_value("0.3")


def test_writing_works_where_browsers_offer_little(
    chromium: Browser, server: Served, expect: Any, backend: FakeBackend
) -> None:
    """As over plain http from another machine: no `randomUUID`, clipboard, microphone, camera."""
    page = chromium.open(server.url)
    page.add_init_script("""
        Object.defineProperty(crypto, "randomUUID", { value: undefined });
        Object.defineProperty(navigator, "clipboard", { value: undefined });
        Object.defineProperty(navigator, "mediaDevices", { value: undefined });
    """)
    page.reload()
    page.get_by_label("Speak", exact=True).uncheck()
    ask(page, "hello")
    expect(page.locator("#chat-log .answer")).to_have_attribute("aria-busy", "false")
    page.locator("#chat-log .answer").get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page.get_by_label("Message").focus()
    page.keyboard.press("Control+v")
    expect(page.get_by_label("Message")).to_have_value("hello ")
    expect(page.get_by_role("button", name="Take a picture")).to_have_count(0)
    page.get_by_role("button", name="Talk", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("only over https")


def test_details_are_hidden_and_shown(page: Any, expect: Any) -> None:
    details = page.get_by_role("complementary", name="Last request")
    expect(details).to_be_visible()
    button = page.get_by_role("button", name="Details")
    button.click()
    expect(details).to_have_count(0)
    button.click()
    expect(details).to_be_visible()
