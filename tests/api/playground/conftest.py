from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import MICROPHONE_HZ, Browser, browser, recording
from tests.realtime.sounds import silence, voice


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[Browser]:
    """A Chromium, with a microphone that hears a word every 4 s. No page may have complained."""
    sounds = (silence(0.8, MICROPHONE_HZ), voice(1.2, MICROPHONE_HZ), silence(2.0, MICROPHONE_HZ))
    with browser(recording(tmp_path / "microphone.wav", *sounds)) as running:
        yield running
    assert running.complaints == []
