"""Headless Chromium with a microphone that plays a file, for tests of the page.

Needs `playwright` and `axe-playwright-python` from PyPI and a Chromium of the system, which
`ci/browser.sh` sees to. Screenshots lie in `$SGLANG_OMNI_SCREENSHOTS`, or `.cache/playground`.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

MICROPHONE_HZ = 48_000
SCREENSHOTS = Path(
    os.environ.get("SGLANG_OMNI_SCREENSHOTS", Path(__file__).parents[2] / ".cache" / "playground")
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The path of a Chromium; skips the test where there is none, or nothing to drive it."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium")
    return found


class Browser:
    """One Chromium.

    What any page of it complains about is in `complaints`. Pages may use the microphone where it is
    `allowed`.
    """

    def __init__(self, chromium: Any, allowed: bool = True) -> None:
        self._chromium, self._allowed = chromium, allowed
        self.complaints: list[str] = []

    def open(self, url: str, **options: Any) -> Any:
        """A page in a context of its own, as a user sees it who came for the first time."""
        context = self._chromium.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        if self._allowed:
            context.grant_permissions(["microphone"], origin=url)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.goto(url)
        return page

    def close_pages(self) -> None:
        """Close every page: none complains of anything from now on."""
        for context in self._chromium.contexts:
            context.close()

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            where = message.location.get("url", "")
            self.complaints.append(f"{message.type}: {message.text} {where}")


@contextmanager
def browser(microphone: Path, allowed: bool = True) -> Iterator[Browser]:
    """A Chromium whose microphone plays a file over and over; its user may not allow its use."""
    path = chromium()
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=15_000)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                *(["--use-fake-ui-for-media-stream"] if allowed else []),
                "--use-fake-device-for-media-stream",
                f"--use-file-for-fake-audio-capture={microphone}",
            ],
        )
        try:
            yield Browser(running, allowed)
        finally:
            running.close()


def ask(page: Any, text: str) -> None:
    """Send a message, as by the keyboard."""
    page.get_by_label("Message").fill(text)
    page.keyboard.press("Enter")


def open_settings(page: Any) -> Any:
    """Open the drawer of the settings, and return it."""
    page.get_by_role("button", name="Settings").click()
    return page.get_by_role("dialog", name="Settings")


def choose(page: Any, **settings: str | bool) -> None:
    """Choose settings by their labels, in which `_` stands for a blank."""
    drawer = open_settings(page)
    for label, value in settings.items():
        field = drawer.get_by_label(label.replace("_", " "), exact=True)
        if isinstance(value, bool):
            field.set_checked(value)
        else:
            field.fill(value)
    page.keyboard.press("Escape")


def recording(path: Path, *sounds: np.ndarray) -> Path:
    """A file for the microphone, of float32 samples at 48 kHz."""
    soundfile.write(path, np.concatenate(sounds), MICROPHONE_HZ, subtype="PCM_16")
    return path


def picture_of(page: Any, name: str) -> Path:
    """Keep a screenshot of the whole page. Returns its path."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    return path


def barriers(page: Any) -> list[str]:
    """What keeps users of keyboards and screen readers out of the page as it is, by axe-core."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]
