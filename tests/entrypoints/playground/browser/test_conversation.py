"""The page in headless Chromium, over answers that are known in advance.

`ci/browser.sh` runs these: they need a Chromium.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    MediaPart,
    TextDelta,
    TextPart,
    TranscriptDelta,
)
from sglang_omni.protocol.errors import EngineFailed
from tests.entrypoints.http.fake import (
    EVERYTHING,
    USAGE,
    FakeBackend,
    Served,
    playing,
    serving,
    tone,
)
from tests.entrypoints.http.middleware.test_auth import KEY, keys
from tests.media.files import encoded, picture, wav
from tests.media.files import tone as clip
from tests.testing.browser import Browser, ask, barriers, choose, picture_of
from tests.testing.family import SPEECH_TEXT

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
TABS = ("Conversation", "Read aloud", "Voices")
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"


async def long_answer(request: Any) -> AsyncGenerator[Event, None]:
    """An hour of speech, made twice as fast as it is heard."""
    yield TextDelta("Once upon a time ")
    yield TranscriptDelta("Once upon a time ")
    while True:
        yield AudioDelta(tone())
        await asyncio.sleep(0.16)


async def brief_hearing(request: Any) -> AsyncGenerator[Event, None]:
    """The transcription of a turn is one word, its answer is long."""
    if request.voice is None:
        yield TextDelta("heard")
        yield Finished("stop", USAGE)
        return
    async for event in long_answer(request):
        yield event


def talk(page: Any) -> None:
    """Start a conversation by voice."""
    page.get_by_role("button", name="Talk", exact=True).click()


def test_an_answer_is_shown_heard_and_measured(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    backend.script = playing(
        *(event for _ in range(5) for event in (TextDelta("word "), AudioDelta(tone()))),
        Finished("stop", USAGE),
        pause=0.02,
    )
    choose(page, Instructions_to_the_model="Be kind.")
    page.get_by_role("combobox", name="Voice").select_option("river")
    ask(page, "Say five words.")
    turns = page.locator("#chat-log article")
    expect(turns).to_have_text(["YouSay five words.", "Answerword word word word word"])
    expect(turns.last).to_have_attribute("aria-busy", "false")
    figures = page.locator("#last-figures")
    expect(figures).to_have_text(
        re.compile(
            r"First text0\.\d{3} sFirst sound0\.\d{3} sReal-time ratio0\.\d{3}Speech1\.60 sGaps0$"
        )
    )
    expect(page.locator("#last-sound")).to_have_attribute(
        "aria-label", "Waveform of 1.6 seconds of sound"
    )
    expect(page.locator("#last-stages")).to_be_visible()
    ask(page, "And again?")
    expect(turns).to_have_count(4)
    expect(turns.last).to_have_attribute("aria-busy", "false")
    second = backend.requests[-1]
    assert second.voice.name == "river"
    said = [(turn.role, turn.content[0].text) for turn in second.messages]
    assert said == [
        ("system", "Be kind."),
        ("user", "Say five words."),
        ("assistant", "word " * 5),
        ("user", "And again?"),
    ]


def test_an_answer_without_speech_is_text_alone(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    page.get_by_label("Speak", exact=True).uncheck()
    ask(page, "quietly")
    expect(page.locator("#last-figures")).to_have_text(re.compile(r"^First text[\d. s]*$"))
    assert backend.requests[-1].voice is None


def test_files_become_parts_of_the_message(
    page: Any, expect: Any, backend: FakeBackend, tmp_path: Path
) -> None:
    files = [tmp_path / "mill.png", tmp_path / "clip.wav", tmp_path / "notes.mp4"]
    for file, data in zip(
        files, (encoded(picture()), wav(clip(0.5), 16_000), b"movie"), strict=True
    ):
        file.write_bytes(data)
    page.locator("#chat-picker").set_input_files(files)
    attached = page.locator("#chat-files li")
    expect(attached).to_have_count(3)
    page.get_by_role("button", name="Remove notes.mp4").click()
    expect(attached).to_have_count(2)
    # Dropped, as by a mouse.
    page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["frames"], "drop.webm", { type: "video/webm" }));
            const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
            document.getElementById("chat").dispatchEvent(new DragEvent("drop", options));
        }"""
    )
    expect(attached).to_have_count(3)
    ask(page, "What are these?")
    expect(page.locator("#chat-log .answer")).to_have_attribute("aria-busy", "false")
    *media, text = backend.requests[-1].messages[-1].content
    assert text == TextPart("What are these?")
    assert [part.kind for part in media] == ["image", "audio", "video"]
    assert all(isinstance(part, MediaPart) for part in media)
    expect(page.locator("#chat-log img[alt='mill.png']")).to_be_visible()
    expect(page.locator("#chat-log audio, #chat-log video")).to_have_count(2)
    shown = page.locator("#chat-log img").evaluate("image => image.naturalWidth")
    assert shown == 64


def test_a_file_that_is_no_medium_is_named(page: Any, expect: Any, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("1,2")
    page.locator("#chat-picker").set_input_files([tmp_path / "table.csv"])
    expect(page.get_by_role("alert")).to_have_text("table.csv is not an image, video or recording")
    expect(page.locator("#chat-files li")).to_have_count(0)


def test_stop_ends_the_answer_and_the_conversation_goes_on(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    backend.script = long_answer
    ask(page, "Tell me everything.")
    turn = page.locator("#chat-log .answer")
    expect(turn).to_contain_text("Once upon a time")
    page.get_by_role("button", name="Stop").click()
    expect(turn).to_contain_text("Stopped.")
    backend.wait_running(0, 5)
    assert page.get_by_role("alert").is_hidden()
    backend.script = playing(TextDelta("yes"), Finished("stop", USAGE))
    ask(page, "Still there?")
    expect(turn.last).to_contain_text("yes")
    assert [turn.role for turn in backend.requests[-1].messages] == ["user", "assistant", "user"]


def test_an_answer_that_breaks_off_says_why(page: Any, expect: Any, backend: FakeBackend) -> None:
    backend.script = playing(TextDelta("I was "), then=EngineFailed("the thinker died"))
    ask(page, "hello")
    expect(page.get_by_role("alert")).to_contain_text("the thinker died")
    expect(page.locator("#chat-log .answer")).to_contain_text("The answer is incomplete.")


def test_a_refused_question_can_be_sent_again(
    page: Any, expect: Any, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(page, Max_tokens="4000")
    monkeypatch.setattr(FakeBackend, "max_tokens", 50)
    ask(page, "How long may it be?")
    expect(page.get_by_role("alert")).to_contain_text("Max tokens must be at most 50")
    expect(page.get_by_label("Message")).to_have_value("How long may it be?")
    expect(page.locator("#chat-log article")).to_have_count(0)
    # The browser itself reports every status of 400.
    assert [text for text in chromium.complaints if "400" not in text] == []
    chromium.complaints.clear()


def test_a_text_is_read_in_a_voice_and_a_manner(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    page.get_by_role("tab", name="Read aloud").click()
    page.get_by_role("combobox", name="Voice").select_option("river")
    page.get_by_label("Text", exact=True).fill("One two three four.")
    page.get_by_label("Style, in words").fill("Slowly.")
    page.get_by_label("Emotion").fill("happy")
    page.get_by_role("button", name="Read aloud").click()
    expect(page.locator("#read-state")).to_have_text("Done")
    expect(page.locator("#last-figures")).to_have_text(
        re.compile(r"^First sound0\.\d{3} sReal-time ratio0\.\d{3}Speech1\.28 sGaps0$")
    )
    expect(page.locator("#last-stages")).to_be_visible()
    speech = backend.requests[-1]
    assert (speech.text, speech.voice.name) == ("One two three four.", "river")
    assert "Slowly." in speech.style.instruction
    assert len(speech.style.instruction) > 20
    picture_of(page, "read")


def test_what_will_be_spoken_is_shown_while_it_is_written(page: Any, expect: Any) -> None:
    page.get_by_role("tab", name="Read aloud").click()
    text = page.get_by_label("Text", exact=True)
    text.fill("Hello there")
    shown, forms = page.locator("#read-preview-text"), page.locator("#read-preview-forms")
    expect(shown).to_be_hidden()
    page.get_by_text("What will be spoken").click()
    expect(shown).to_have_text("Hello there")
    expect(forms).to_be_hidden()
    text.fill("We met at 3:30pm here, and you?")
    expect(shown).to_have_text(SPEECH_TEXT.preview(text.input_value()).text)
    if SPEECH_TEXT.preview(text.input_value()).forms:
        expect(forms.get_by_role("row").nth(1)).to_have_text("3:30pmtimethree thirty PM")
    assert barriers(page) == []
    picture_of(page, "preview")
    text.fill("")
    expect(shown).to_be_empty()


def test_a_preview_of_a_text_that_is_refused_says_why(
    page: Any, expect: Any, backend: FakeBackend, chromium: Browser
) -> None:
    backend.capabilities = EVERYTHING
    page.get_by_role("tab", name="Read aloud").click()
    page.get_by_text("What will be spoken").click()
    text = page.get_by_label("Text", exact=True)
    text.fill("Say Привет")
    expect(page.locator("#read-preview-text")).to_have_text("Say Привет (not spoken: Привет)")
    text.fill("<speak>a<b/></speak>")
    expect(page.locator("#read-preview-text")).to_contain_text("<b> is not supported")
    chromium.complaints.clear()


def test_a_voice_is_cloned_chosen_used_and_deleted(
    page: Any, expect: Any, backend: FakeBackend, tmp_path: Path
) -> None:
    recording = tmp_path / "me.wav"
    recording.write_bytes(wav(clip(2.0), 16_000))
    page.get_by_role("tab", name="Voices").click()
    page.get_by_label("Recording").set_input_files(recording)
    page.get_by_label("Name").fill("myself")
    page.get_by_label("Transcript").fill("ah")
    clone = page.get_by_role("button", name="Clone")
    # Without the speaker's consent the browser does not let it go.
    clone.click()
    assert backend.cloner.cloned == []
    page.get_by_label("The speaker agrees").check()
    clone.click()
    expect(page.locator("#voices-state")).to_have_text("myself can speak now")
    expect(page.locator("#voices-list li")).to_contain_text("myself (2.5 s, with transcript)")
    picture_of(page, "voices")
    page.get_by_role("tab", name="Conversation").click()
    expect(page.get_by_role("combobox", name="Voice")).to_have_value("myself")
    ask(page, "hello")
    expect(page.locator("#chat-log .answer")).to_have_attribute("aria-busy", "false")
    assert backend.requests[-1].voice.name == "myself"
    page.get_by_role("tab", name="Voices").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete the voice myself").click()
    expect(page.locator("#voices-list li")).to_have_count(0)
    page.get_by_role("tab", name="Conversation").click()
    expect(page.get_by_role("combobox", name="Voice")).to_have_value("prompt")


def test_speech_over_an_answer_silences_it(page: Any, expect: Any, backend: FakeBackend) -> None:
    backend.script = brief_hearing
    talk(page)
    page.get_by_text("Events").click()
    log, state = page.locator("#talk-events"), page.locator("#talk-state")
    expect(state).to_have_text("Speaking")
    expect(page.locator("#chat-log article.user").first).to_have_text("Youheard")
    # The next word, four seconds after the first, is spoken over the answer.
    expect(log).to_contain_text("→ conversation.item.truncate ")
    expect(log).to_contain_text("← conversation.item.truncated")
    expect(log).to_contain_text('"reason":"turn_detected"')
    heard = re.search(
        r'"audio_end_ms":(\d+)\}\s', log.inner_text().partition("→ conversation.item.t")[2]
    )
    # It spoke for about two seconds, less what the voice detection takes.
    assert heard is not None
    assert 500 < int(heard[1]) < 4000
    expect(page.locator("#chat-log article.answer").first).to_contain_text("Interrupted after")
    picture_of(page, "talk_barge_in")
    page.get_by_role("button", name="End", exact=True).click()
    expect(state).to_have_count(0)
    backend.wait_running(0, 5)


def test_answers_are_spoken_at_the_speed_that_is_chosen(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    choose(page, Push_to_talk=True, Speed_of_speech="9")
    talk(page)
    expect(page.get_by_role("alert")).to_contain_text("Speed of speech: ")
    choose(page, Speed_of_speech="1.5")
    talk(page)
    page.get_by_text("Events").click()
    log = page.locator("#talk-events")
    expect(page.locator("#talk-state")).to_have_text("Listening")
    expect(log).to_contain_text('"speed":1.5')
    choose(page, Speed_of_speech="0.5")
    expect(log.locator("li", has_text="→ session.update").last).to_contain_text('"speed":0.5')
    expect(log.locator("li", has_text="← session.updated")).to_have_count(2)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_held_button_makes_a_turn_and_stops_an_answer(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    backend.script = brief_hearing
    choose(page, Push_to_talk=True)
    talk(page)
    page.get_by_text("Events").click()
    log, state = page.locator("#talk-events"), page.locator("#talk-state")
    expect(state).to_have_text("Listening")
    push = page.get_by_role("button", name="Hold to talk")
    push.focus()
    page.keyboard.down(" ")
    expect(push).to_have_attribute("aria-pressed", "true")
    page.wait_for_timeout(800)
    page.keyboard.up(" ")
    expect(push).to_have_attribute("aria-pressed", "false")
    expect(state).to_have_text("Speaking")
    expect(page.locator("#last-figures")).to_contain_text("After you spoke")
    assert [request.voice is not None for request in backend.requests].count(True) == 1
    page.wait_for_timeout(700)
    # Pushed again, by the mouse, while the answer is spoken.
    push.hover()
    page.mouse.down()
    expect(log).to_contain_text("→ response.cancel")
    expect(log).to_contain_text('"reason":"client_cancelled"')
    expect(log).to_contain_text("← conversation.item.truncated")
    page.wait_for_timeout(500)
    page.mouse.up()
    expect(page.locator("#chat-log article.answer")).to_have_count(2)
    picture_of(page, "talk_push")
    page.get_by_role("button", name="End", exact=True).click()
    assert page.get_by_role("alert").is_hidden()


def test_a_push_that_says_nothing_is_no_turn(page: Any, expect: Any, backend: FakeBackend) -> None:
    choose(page, Push_to_talk=True)
    talk(page)
    expect(page.locator("#talk-state")).to_have_text("Listening")
    push = page.get_by_role("button", name="Hold to talk")
    # As a screen reader clicks, which can hold nothing: from one click to the next, at once.
    click = "(it) => [0, 1].map(() => { it.click(); return it.getAttribute('aria-pressed'); })"
    assert push.evaluate(click) == ["true", "false"]
    expect(page.get_by_role("alert")).to_contain_text("Hold the button")
    assert backend.requests == []


def test_a_session_that_the_server_ends_is_over(
    page: Any, expect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeBackend, "realtime", RealtimeOptions(idle_seconds=1.0))
    choose(page, Push_to_talk=True)
    talk(page)
    expect(page.locator("#talk-state")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_text("The session has ended: session_expired")
    expect(page.locator("#talk-state")).to_have_count(0)
    expect(page.get_by_role("button", name="Talk", exact=True)).to_be_enabled()


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with serving(Access(keys(KEY))) as served:
        yield served


def test_a_key_is_asked_for_and_kept_by_its_tab_alone(
    chromium: Browser, locked: Served, expect: Any
) -> None:
    locked.backend.reset()
    page = chromium.open(locked.url)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("a key is needed")
    field = dialog.get_by_label("Key")
    field.fill("a-key-nobody-has")
    page.keyboard.press("Enter")
    expect(field).to_have_value("")
    field.fill(KEY)
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    ask(page, "hello")
    expect(page.locator("#chat-log .answer")).to_contain_text("hello")
    talk(page)
    expect(page.locator("#talk-state")).to_have_text("Listening")
    page.get_by_role("button", name="End", exact=True).click()
    assert page.evaluate("[Object.values(sessionStorage), document.cookie]") == [[KEY], ""]
    assert KEY not in page.evaluate("JSON.stringify(localStorage)")
    page.reload()
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    other = page.context.new_page()
    other.goto(locked.url)
    expect(other.get_by_role("dialog")).to_be_visible()
    page.get_by_role("button", name="Key").click()
    dialog.get_by_role("button", name="Forget it").click()
    expect(dialog).to_contain_text("a key is needed")
    assert page.evaluate("sessionStorage.length") == 0
    # The browser itself reports every status of 401.
    assert [text for text in chromium.complaints if "401" not in text] == []
    chromium.complaints.clear()


def test_nothing_but_the_server_is_asked_for_anything(
    chromium: Browser, server: Served, expect: Any
) -> None:
    page = chromium.open(server.url)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    ask(page, "hello")
    expect(page.locator("#last-stages")).to_be_visible()
    assert len(asked) > 8
    assert [url for url in asked if not url.startswith(server.url)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out(chromium: Browser, server: Served, expect: Any, scheme: str) -> None:
    page = chromium.open(server.url, color_scheme=scheme)
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    ask(page, "hello")
    expect(page.locator("#last-stages")).to_be_visible()
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        assert barriers(page) == [], name
        picture_of(page, f"{scheme}_{name.split()[0].lower()}")
    page.get_by_role("button", name="Key").click()
    assert barriers(page) == []


def test_tabs_are_walked_by_arrows(page: Any, expect: Any) -> None:
    page.get_by_role("tab", name="Conversation").focus()
    for name in (*TABS[1:], TABS[0]):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tab", selected=True)).to_have_text(name)
        expect(page.get_by_role("tabpanel")).to_have_count(1)
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(chromium: Browser, server: Served, expect: Any, scheme: str) -> None:
    page = chromium.open(server.url, color_scheme=scheme, **PHONE)
    expect(page.locator("#voice option")).to_have_text(["prompt", "river"])
    ask(page, "hello " + "long" * 40)
    page.get_by_role("button", name="Details").tap()
    expect(page.locator("#last-stages")).to_be_visible()
    for name in TABS:
        page.get_by_role("tab", name=name).tap()
        scroll, width = page.evaluate(WIDTHS)
        assert scroll <= width, name
        picture_of(page, f"phone_{scheme}_{name.split()[0].lower()}")


async def text_then_speech(request: Any) -> AsyncGenerator[Event, None]:
    """All of the text at once, then an hour of speech."""
    yield TextDelta("All of the text.")
    yield TranscriptDelta("All of the text.")
    while True:
        yield AudioDelta(tone())
        await asyncio.sleep(0.16)


def test_the_next_message_does_not_wait_for_speech_and_silences_it(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    backend.script = text_then_speech
    ask(page, "Tell me.")
    answers = page.locator("#chat-log .answer")
    expect(answers).to_contain_text("All of the text.")
    expect(page.locator("#last-figures")).to_contain_text("First sound")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    backend.script = playing(TextDelta("yes"), Finished("stop", USAGE))
    ask(page, "And now?")
    expect(answers.last).to_contain_text("yes")
    expect(answers.first).to_contain_text("Stopped by the next message.")
    expect(answers.first).to_have_attribute("aria-busy", "false")
    backend.wait_running(0, 5)
    # What was written of the first answer is part of the conversation.
    said = [turn.content[0].text for turn in backend.requests[-1].messages]
    assert said == ["Tell me.", "All of the text.", "And now?"]
    assert page.get_by_role("alert").is_hidden()
