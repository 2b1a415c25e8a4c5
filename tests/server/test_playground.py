"""The page in headless Chromium with a microphone, before real servers.

One is on the tiny checkpoint, one on the bundled model as users start it first. `ci/browser.sh`
runs these: they need a Chromium. What the page does with answers that are known in advance is in
`tests/entrypoints/playground`.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import soundfile
import soxr

from tests.entrypoints.realtime.sounds import silence, voice
from tests.media.files import encoded, movie, picture, tone, wav
from tests.server.running import RunningServer, wait_until
from tests.server.starters import answers_rightly, declared_starters
from tests.testing.browser import (
    MICROPHONE_HZ,
    Browser,
    ask,
    browser,
    choose,
    picture_of,
    recording,
)
from tests.testing.machine import PATIENCE

# A spoken answer of the tiny model to a brief question, on two cores.
ANSWER_MS = 60_000
# The bundled model hears this right in its own default voice, whatever the seed.
SAID = "How much is seven plus five?"


@pytest.fixture
def chromium(tmp_path: Path) -> Iterator[Browser]:
    """A Chromium, with a microphone that hears a word every 8 s. No page may have complained."""
    sounds = (silence(0.8, MICROPHONE_HZ), voice(1.2, MICROPHONE_HZ), silence(6.0, MICROPHONE_HZ))
    with browser(recording(tmp_path / "microphone.wav", *sounds)) as running:
        yield running
    assert running.complaints == []


@pytest.fixture
def expect() -> Any:
    from playwright.sync_api import expect

    expect.set_options(timeout=ANSWER_MS)
    return expect


@pytest.fixture
def page(chromium: Browser, server: RunningServer, expect: Any) -> Any:
    opened = chromium.open(server.url)
    expect(opened.locator("#voice option").first).to_be_attached()
    choose(opened, Max_tokens="24")
    return opened


def stages(page: Any) -> set[str]:
    """The names of the stages that the page shows."""
    rows = page.locator("#last-stages tbody th").all_inner_texts()
    return {row.split()[0] for row in rows}


def test_a_question_with_files_is_answered_in_text_and_speech(
    page: Any, expect: Any, tmp_path: Path
) -> None:
    (tmp_path / "mill.png").write_bytes(encoded(picture()))
    (tmp_path / "clip.wav").write_bytes(wav(tone(0.5), 16_000))
    (tmp_path / "turning.mp4").write_bytes(movie(10))
    files = [tmp_path / name for name in ("mill.png", "clip.wav", "turning.mp4")]
    page.locator("#chat-picker").set_input_files(files)
    page.get_by_label("Message").fill("What is turning here?")
    page.keyboard.press("Enter")
    answer = page.locator("#chat-log .answer")
    expect(answer).to_have_attribute("aria-busy", "false")
    assert len(answer.inner_text()) > len("Answer") + 10
    expect(page.locator("#last-figures")).to_have_text(
        re.compile(
            r"^First text\d+\.\d+ sFirst sound\d+\.\d+ s"
            r"Real-time ratio\d+\.\d+Speech[1-9]\d*\.\d\d sGaps\d+$"
        )
    )
    expect(page.locator("#last-stages")).to_be_visible()
    assert stages(page) >= {"preprocess", "image_encoder", "audio_encoder", "thinker", "talker"}
    picture_of(page, "server_chat")


def test_a_broken_file_is_named_and_a_new_conversation_is_rid_of_it(
    page: Any, expect: Any, chromium: Browser, tmp_path: Path
) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    page.locator("#chat-picker").set_input_files([tmp_path / "bad.png"])
    ask(page, "What is this?")
    expect(page.get_by_role("alert")).to_contain_text("bad.png is not an image")
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("alert")).to_be_hidden()
    ask(page, "What is turning here?")
    expect(page.locator("#chat-log .answer")).to_have_attribute("aria-busy", "false")
    # The browser itself reports every status of 400.
    assert [text for text in chromium.complaints if "400" not in text] == []
    chromium.complaints.clear()


def test_a_text_is_read_in_a_cloned_voice(page: Any, expect: Any, tmp_path: Path) -> None:
    recording(tmp_path / "me.wav", voice(2.0, MICROPHONE_HZ))
    page.get_by_role("tab", name="Voices").click()
    page.get_by_label("Recording").set_input_files(tmp_path / "me.wav")
    page.get_by_label("Name").fill("browser")
    page.get_by_label("The speaker agrees").check()
    page.get_by_role("button", name="Clone").click()
    expect(page.locator("#voices-list li")).to_contain_text("browser (2.0 s)")
    picture_of(page, "server_voices")
    page.get_by_role("tab", name="Read aloud").click()
    page.get_by_label("Text", exact=True).fill("The mill stands by the river.")
    page.get_by_label("Style, in words").fill("Slowly.")
    page.get_by_role("button", name="Read aloud").click()
    expect(page.locator("#read-state")).to_have_text("Done")
    expect(page.locator("#last-sound")).to_have_attribute(
        "aria-label", re.compile(r"^Waveform of [1-9]\d*\.\d seconds of sound$")
    )
    expect(page.locator("#last-stages")).to_be_visible()
    assert "talker" in stages(page)
    picture_of(page, "server_read")
    page.get_by_role("tab", name="Voices").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete the voice browser").click()
    expect(page.locator("#voices-list li")).to_have_count(0)


def test_a_spoken_question_is_answered_and_the_answer_spoken_over(
    page: Any, expect: Any, server: RunningServer
) -> None:
    choose(page, Max_tokens="2000")
    page.get_by_role("button", name="Talk", exact=True).click()
    page.get_by_text("Events").click()
    state, log = page.locator("#talk-state"), page.locator("#talk-events")
    expect(state).to_have_text("Speaking")
    expect(page.locator("#last-figures")).to_contain_text("After you spoke")
    # The same word, eight seconds later, comes while the long answer is spoken.
    expect(log).to_contain_text("→ conversation.item.truncate ")
    expect(log).to_contain_text("← conversation.item.truncated")
    expect(log).to_contain_text('"reason":"turn_detected"')
    expect(page.locator("#chat-log .answer").first).to_contain_text("Interrupted after")
    expect(page.locator("#last-stages")).to_be_visible()
    assert stages(page) >= {"thinker", "talker"}
    picture_of(page, "server_talk")
    # The second question is answered, too.
    expect(state).to_have_text("Speaking")
    page.get_by_role("button", name="End", exact=True).click()
    expect(state).to_have_count(0)
    wait_until(server.is_idle, 10, "the engines at rest")
    assert page.get_by_role("alert").is_hidden()


def test_a_held_button_is_a_turn(page: Any, expect: Any) -> None:
    choose(page, Push_to_talk=True)
    page.get_by_role("button", name="Talk", exact=True).click()
    expect(page.locator("#talk-state")).to_have_text("Listening")
    push = page.get_by_role("button", name="Hold to talk")
    push.hover()
    page.mouse.down()
    page.wait_for_timeout(1500)
    page.mouse.up()
    expect(page.locator("#talk-state")).to_have_text("Speaking")
    # It ends, and the next turn may begin.
    expect(page.locator("#talk-state")).to_have_text("Listening")
    question, answer = page.locator("#chat-log article").all()
    expect(question).to_have_attribute("aria-busy", "false")
    expect(answer).to_have_attribute("aria-busy", "false")
    assert "…" not in question.inner_text().splitlines()[-1:]
    assert len(answer.inner_text()) > len("Answer") + 10
    assert page.get_by_role("alert").is_hidden()


@pytest.fixture
def first_page(chromium: Browser, default_server: RunningServer, expect: Any) -> Any:
    """What users see first: the page of the bundled model."""
    opened = chromium.open(default_server.url)
    expect(opened.locator("#voice option").first).to_be_attached()
    return opened


def test_every_starter_of_the_bundled_model_is_answered(first_page: Any, expect: Any) -> None:
    page = first_page
    starters = page.get_by_role("group", name="Try one of these").get_by_role("button")
    prompts = starters.all_inner_texts()
    assert prompts == declared_starters()
    answer = page.locator("#chat-log .answer")
    for prompt in prompts:
        starters.filter(has_text=prompt).click()
        expect(answer).to_have_attribute("aria-busy", "false")
        expect(answer).to_have_text(re.compile(r"^Answer\S.*\S$"))
        assert answers_rightly(prompt, answer.inner_text()), answer.inner_text()
        expect(page.locator("#last-figures")).to_contain_text("First sound")
        page.get_by_role("button", name="New conversation").click()


def test_a_question_that_is_said_to_the_bundled_model_is_answered(
    default_server: RunningServer, expect: Any, tmp_path: Path
) -> None:
    body = {"input": SAID, "seed": 1, "response_format": "wav"}
    reply = httpx.post(f"{default_server.api}/audio/speech", json=body, timeout=60)
    said, rate = soundfile.read(io.BytesIO(reply.content))
    samples = soxr.resample(said, rate, MICROPHONE_HZ)
    sounds = (silence(1.0, MICROPHONE_HZ), samples, silence(40.0, MICROPHONE_HZ))
    with browser(recording(tmp_path / "question.wav", *sounds)) as chromium:
        page = chromium.open(default_server.url)
        page.get_by_role("button", name="Talk", exact=True).click()
        turns = page.locator("#chat-log article")
        expect(turns).to_have_count(2)
        expect(turns.first).to_have_text(f"You{SAID}")
        expect(turns.last).to_contain_text(re.compile(r"\b12\b"))
        expect(page.locator("#last-figures")).to_contain_text("After you spoke")
        picture_of(page, "bundled_talk")
        page.get_by_role("button", name="End", exact=True).click()
        assert chromium.complaints == []


def test_the_bundled_model_draws_and_edits_on_the_page(first_page: Any, expect: Any) -> None:
    page = first_page
    page.get_by_role("tab", name="Draw").click()
    images = page.get_by_role("list", name="Images").get_by_role("img")
    prompts = ("a red circle above two blue squares", "make the circle green")
    for count, prompt in enumerate(prompts, start=1):
        page.get_by_label("Seed", exact=True).fill("1")
        page.get_by_label("Prompt", exact=True).fill(prompt)
        page.get_by_role("button", name="Draw", exact=True).click()
        # The first one waits for the engine to start.
        expect(page.locator("#draw-state")).to_have_text("Done", timeout=120_000 * PATIENCE)
        expect(images).to_have_count(count)
        expect(images.first).to_have_attribute("alt", prompt)
        expect(images.first).to_have_js_property("naturalWidth", 256)
        page.get_by_role("button", name="Edit this image").first.click()
    picture_of(page, "bundled_draw")
    assert page.get_by_role("alert").is_hidden()


def test_the_bundled_model_offers_its_styles_and_names_what_it_cannot_speak(
    first_page: Any, expect: Any, chromium: Browser
) -> None:
    page = first_page
    page.get_by_role("tab", name="Read aloud").click()
    for field in ("Style, in words", "Emotion", "Pace", "Pitch", "Volume"):
        expect(page.get_by_label(field)).to_be_visible()
    expect(page.get_by_label("Dialect")).to_be_hidden()
    page.get_by_label("Text", exact=True).fill("The train leaves at seven.")
    page.get_by_label("Style, in words").fill("Speak slowly.")
    page.get_by_role("button", name="Read aloud").click()
    expect(page.locator("#read-state")).to_have_text("Done")
    expect(page.get_by_text("The model speaks English.")).to_be_visible()
    page.get_by_label("Text", exact=True).fill("你好")
    page.get_by_role("button", name="Read aloud").click()
    expect(page.get_by_role("alert")).to_have_text(re.compile("^Text: Ming-mini speaks English"))
    picture_of(page, "bundled_read")
    # The browser itself reports every status of 400.
    assert [text for text in chromium.complaints if "400" not in text] == []
    chromium.complaints.clear()
