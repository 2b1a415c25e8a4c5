"""Chromium, and a page of the server in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.entrypoints.http.fake import Served
from tests.entrypoints.realtime.sounds import silence, voice
from tests.testing.browser import MICROPHONE_HZ, Browser, browser, recording


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[Browser]:
    """A Chromium, with a microphone that hears a word every 4 s. No page may have complained."""
    sounds = (silence(0.8, MICROPHONE_HZ), voice(1.2, MICROPHONE_HZ), silence(2.0, MICROPHONE_HZ))
    with browser(recording(tmp_path / "microphone.wav", *sounds)) as running:
        yield running
    assert running.complaints == []


@pytest.fixture
def expect() -> Any:
    from playwright.sync_api import expect

    return expect


@pytest.fixture
def page(chromium: Browser, server: Served, expect: Any) -> Any:
    """The page, with everything that the server told it."""
    opened = chromium.open(server.url)
    expect(opened.locator("#voice option")).to_have_text(["prompt", "river"])
    return opened
