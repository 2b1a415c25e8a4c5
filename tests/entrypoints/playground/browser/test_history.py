"""Conversations that the browser keeps, in headless Chromium."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from sglang_omni.pipeline.request import Event
from sglang_omni.protocol.errors import EngineFailed
from tests.entrypoints.http.fake import FakeBackend
from tests.testing.browser import Browser, ask, barriers, picture_of


async def failing_late(request: Any) -> AsyncGenerator[Event, None]:
    """Refuse a request after a second, when its message may have been kept."""
    await asyncio.sleep(1)
    raise EngineFailed("no")
    yield


def converse(page: Any, expect: Any, *texts: str) -> None:
    """Have a conversation of its own, and wait until it is kept."""
    page.get_by_role("button", name="New conversation").click()
    for number, text in enumerate(texts, start=1):
        ask(page, text)
        answers = page.locator("#chat-log .answer")
        expect(answers).to_have_count(number)
        expect(answers.last).to_have_attribute("aria-busy", "false")
    page.wait_for_function("text => JSON.stringify(localStorage).includes(text)", arg=texts[-1])


def open_history(page: Any) -> Any:
    page.get_by_role("button", name="History").click()
    return page.get_by_role("dialog", name="History")


def titles(drawer: Any) -> Any:
    return drawer.get_by_role("list", name="Conversations").locator("li button span")


def test_conversations_are_kept_found_and_gone_on_with(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    converse(page, expect, "Where is the mill?", "And the bridge?")
    converse(page, expect, "How deep is the river?")
    page.reload()
    drawer = open_history(page)
    expect(titles(drawer)).to_have_text(["How deep is the river?", "Where is the mill?"])
    assert barriers(page) == []
    picture_of(page, "history")
    drawer.get_by_label("Search").fill("bridge")
    expect(titles(drawer)).to_have_text(["Where is the mill?"])
    drawer.get_by_label("Search").fill("castle")
    expect(drawer.get_by_text("No conversation has these words.")).to_be_visible()
    drawer.get_by_label("Search").fill("mill")
    drawer.get_by_role("button", name="Open Where is the mill?").click()
    expect(drawer).to_be_hidden()
    expect(page.locator("#chat-log article")).to_have_count(4)
    ask(page, "Is it old?")
    expect(page.locator("#chat-log .answer")).to_have_count(3)
    expect(page.locator("#chat-log .answer").last).to_have_attribute("aria-busy", "false")
    assert [turn.role for turn in backend.requests[-1].messages] == ["user", "assistant"] * 2 + [
        "user"
    ]
    assert backend.requests[-1].messages[0].content[0].text == "Where is the mill?"


def test_a_message_that_was_rejected_is_not_kept(
    page: Any, expect: Any, backend: FakeBackend, chromium: Browser
) -> None:
    backend.script = failing_late
    ask(page, "one")
    expect(page.get_by_role("alert")).to_have_text("no")
    page.wait_for_timeout(500)
    assert "sglang-omni-conversations" not in page.evaluate("Object.keys(localStorage)")
    # The browser itself reports every status of 500.
    chromium.complaints.clear()


def test_a_conversation_is_renamed_and_deleted(page: Any, expect: Any) -> None:
    converse(page, expect, "one")
    drawer = open_history(page)
    drawer.get_by_role("button", name="Rename one").click()
    drawer.get_by_label("New title").fill("First")
    page.keyboard.press("Enter")
    expect(titles(drawer)).to_have_text(["First"])
    page.once("dialog", lambda dialog: dialog.dismiss())
    drawer.get_by_role("button", name="Delete First").click()
    expect(titles(drawer)).to_have_count(1)
    page.once("dialog", lambda dialog: dialog.accept())
    drawer.get_by_role("button", name="Delete First").click()
    expect(drawer.get_by_text("No conversations yet.")).to_be_visible()


def test_all_conversations_are_exported_and_deleted(page: Any, expect: Any, tmp_path: Path) -> None:
    converse(page, expect, "one")
    converse(page, expect, "two")
    drawer = open_history(page)
    with page.expect_download() as download:
        drawer.get_by_role("button", name="Export all").click()
    download.value.save_as(tmp_path / "all.json")
    exported = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert [[turn["text"].strip() for turn in one["turns"]] for one in exported] == [
        ["two", "two"],
        ["one", "one"],
    ]
    page.once("dialog", lambda dialog: dialog.accept())
    drawer.get_by_role("button", name="Delete all").click()
    expect(titles(drawer)).to_have_count(0)
    assert "sglang-omni-conversations" not in page.evaluate("Object.keys(localStorage)")
