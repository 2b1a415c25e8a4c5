"""Take the moving picture of the page that the README shows: a question written, and one said.

    PYTHONPATH=.cache/browser python ci/page_picture.py http://127.0.0.1:8000 docs/charts/page.gif

Needs a running server with the bundled model, a Chromium, and what `ci/browser.sh` installs. What
is said is the server's own speech, from a file in place of a microphone.
"""

import io
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import soundfile
from PIL import Image
from playwright.sync_api import sync_playwright

WRITTEN, SAID = "What is 17 + 25?", "What is seven plus five?"
SIZE = {"width": 1180, "height": 760}
SHOWN = (885, 570)
FRAME_MS, COLOURS = 250, 48
SILENCE_SECONDS = (1.5, 40.0)
LAST_FRAME_MS = 3000
ANSWER_SECONDS = 40


class Film:
    """Frames of a page at equal times."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self.frames: list[Image.Image] = []

    def take(self, seconds: float) -> None:
        """Take frames for some seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            next_at = time.monotonic() + FRAME_MS / 1000
            shot = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB")
            self.frames.append(shot.resize(SHOWN, Image.Resampling.LANCZOS))
            self._page.wait_for_timeout(max(1000 * (next_at - time.monotonic()), 1))

    def take_until(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Take frames until something is over, and for a second more.

        Raises `TimeoutError` if it is not over after some seconds.
        """
        end = time.monotonic() + seconds
        while not is_over():
            if time.monotonic() > end:
                raise TimeoutError(f"the page is not done after {seconds} s")
            self.take(FRAME_MS / 1000)
        self.take(1)

    def save(self, path: str) -> None:
        """Write a GIF; equal frames in a row are one."""
        durations: list[int] = []
        kept: list[Image.Image] = []
        for frame in self.frames:
            if kept and kept[-1].tobytes() == frame.tobytes():
                durations[-1] += FRAME_MS
                continue
            kept.append(frame)
            durations.append(FRAME_MS)
        durations[-1] = LAST_FRAME_MS
        palette = kept[-1].quantize(COLOURS)
        images = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in kept]
        images[0].save(
            path, save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True
        )


def say(url: str, text: str, path: Path) -> None:
    """Write a file in which the server says a text after some silence."""
    body = {"input": text, "seed": 1, "response_format": "wav"}
    reply = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=60).raise_for_status()
    samples, rate = soundfile.read(io.BytesIO(reply.content))
    before, after = (np.zeros(round(rate * seconds)) for seconds in SILENCE_SECONDS)
    soundfile.write(path, np.concatenate((before, samples, after)), rate, subtype="PCM_16")


def _is_answered(page: Any) -> bool:
    """Whether what was said is written down, and its answer spoken to the end."""
    turns = page.locator("#chat-log article").all_inner_texts()
    heard = any(SAID in turn for turn in turns)
    return heard and len(turns) == 4 and page.locator("#talk-state").inner_text() == "Listening"


def main(url: str, path: str) -> None:
    """Write a question and say another, and keep the picture."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        microphone = Path(folder) / "microphone.wav"
        say(url, SAID, microphone)
        browser = playwright.chromium.launch(
            executable_path=found,
            args=[
                *("--no-sandbox", "--use-fake-ui-for-media-stream"),
                *("--use-fake-device-for-media-stream",),
                f"--use-file-for-fake-audio-capture={microphone}",
            ],
        )
        page = browser.new_page(viewport=SIZE, locale="en-GB")
        page.goto(url)
        page.get_by_role("group", name="Try one of these").wait_for()
        film = Film(page)
        film.take(0.5)
        for character in WRITTEN:
            page.get_by_label("Message").press_sequentially(character)
            film.take(0.01)
        page.keyboard.press("Enter")
        stop = page.get_by_role("button", name="Stop")
        stop.wait_for()
        film.take_until(stop.is_hidden, ANSWER_SECONDS)
        page.get_by_role("button", name="Talk", exact=True).click()
        film.take_until(lambda: _is_answered(page), ANSWER_SECONDS)
        film.save(path)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
