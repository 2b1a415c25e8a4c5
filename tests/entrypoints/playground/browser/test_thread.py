"""What is said and what is written are one conversation, in headless Chromium."""

from typing import Any

from sglang_omni.pipeline.request import AudioDelta, Event, Finished, TextDelta, TranscriptDelta
from tests.entrypoints.http.fake import USAGE, FakeBackend, playing, tone
from tests.testing.browser import ask, barriers, choose, picture_of

SPOKEN: tuple[Event, ...] = (
    TextDelta("By the river."),
    TranscriptDelta("By the river."),
    *(AudioDelta(tone()) for _ in range(2)),
    Finished("stop", USAGE),
)


def texts(backend: FakeBackend) -> list[tuple[str, str]]:
    return [
        (turn.role, part.text)
        for turn in backend.requests[-1].messages
        for part in turn.content
        if hasattr(part, "text")
    ]


def test_a_conversation_by_voice_knows_what_was_written_and_goes_on_in_writing(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    choose(page, Push_to_talk=True)
    ask(page, "I look for a mill.")
    answers = page.locator("#chat-log .answer")
    expect(answers.last).to_have_attribute("aria-busy", "false")
    page.get_by_role("button", name="Talk", exact=True).click()
    state = page.locator("#talk-state")
    expect(state).to_have_text("Listening")
    backend.script = playing(*SPOKEN)
    ask(page, "Where is it?")
    expect(answers).to_have_count(2)
    expect(answers.last).to_contain_text("By the river.")
    expect(answers.last).to_have_attribute("aria-busy", "false")
    spoken = [request for request in backend.requests if getattr(request, "voice", None)][-1]
    said = [(turn.role, part.text) for turn in spoken.messages for part in turn.content]
    assert said[-3:] == [
        ("user", "I look for a mill."),
        ("assistant", "I look for a mill. "),
        ("user", "Where is it?"),
    ]
    assert barriers(page) == []
    picture_of(page, "thread")
    page.get_by_role("button", name="End", exact=True).click()
    expect(state).to_have_count(0)
    ask(page, "Is it old?")
    expect(answers).to_have_count(3)
    expect(answers.last).to_have_attribute("aria-busy", "false")
    assert texts(backend)[-3:] == [
        ("user", "Where is it?"),
        ("assistant", "By the river."),
        ("user", "Is it old?"),
    ]


def test_a_conversation_that_is_ended_while_it_is_opened_is_over(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    page.evaluate("""() => {
        const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        window.streams = [];
        navigator.mediaDevices.getUserMedia = async (options) => {
            await new Promise((resolve) => setTimeout(resolve, 500));
            const stream = await open(options);
            window.streams.push(stream);
            return stream;
        };
    }""")
    page.get_by_role("button", name="Talk", exact=True).click()
    expect(page.locator("#talk-state")).to_have_text("Connecting")
    page.get_by_role("button", name="End", exact=True).click()
    expect(page.locator("#talk-state")).to_have_count(0)
    page.wait_for_function("() => window.streams[0]?.getTracks()[0].readyState === 'ended'")
    expect(page.get_by_role("alert")).to_be_hidden()
    assert backend.requests == []


def test_what_is_written_while_a_session_is_opened_is_answered(
    page: Any, expect: Any, backend: FakeBackend
) -> None:
    choose(page, Push_to_talk=True)
    page.evaluate("""() => {
        const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        navigator.mediaDevices.getUserMedia = async (options) => {
            await new Promise((resolve) => setTimeout(resolve, 500));
            return open(options);
        };
    }""")
    backend.script = playing(*SPOKEN)
    page.get_by_role("button", name="Talk", exact=True).click()
    expect(page.locator("#talk-state")).to_have_text("Connecting")
    ask(page, "Where is it?")
    expect(page.locator("#chat-log .answer")).to_contain_text("By the river.")
    # A session has been told of its turns: they stay as they are.
    expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    page.get_by_role("button", name="End", exact=True).click()
    expect(page.get_by_role("button", name="Edit")).to_have_count(1)


def test_a_voice_that_is_chosen_while_talking_is_used(page: Any, expect: Any) -> None:
    choose(page, Push_to_talk=True)
    page.get_by_role("button", name="Talk", exact=True).click()
    expect(page.locator("#talk-state")).to_have_text("Listening")
    page.get_by_text("Events").click()
    page.get_by_role("combobox", name="Voice").select_option("river")
    log = page.locator("#talk-events li")
    expect(log.filter(has_text="→ session.update ").last).to_contain_text('"voice":"river"')
    expect(log.filter(has_text="← session.updated")).to_have_count(2)
    page.get_by_role("button", name="End", exact=True).click()


def test_a_muted_microphone_is_not_heard(page: Any, expect: Any, backend: FakeBackend) -> None:
    page.get_by_role("button", name="Talk", exact=True).click()
    expect(page.locator("#talk-state")).to_be_visible()
    mute = page.get_by_role("button", name="Mute")
    mute.click()
    expect(mute).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#talk-state")).to_have_text("Listening")
    # A word comes every four seconds.
    page.wait_for_timeout(5000)
    assert [request for request in backend.requests if getattr(request, "voice", None)] == []
    page.get_by_role("button", name="End", exact=True).click()


def test_a_recording_cannot_be_part_of_a_conversation_by_voice(
    page: Any, expect: Any, tmp_path: Any
) -> None:
    (tmp_path / "clip.wav").write_bytes(b"RIFF")
    choose(page, Push_to_talk=True)
    page.get_by_role("button", name="Talk", exact=True).click()
    expect(page.locator("#talk-state")).to_have_text("Listening")
    page.locator("#chat-picker").set_input_files([tmp_path / "clip.wav"])
    ask(page, "What is this?")
    expect(page.get_by_role("alert")).to_contain_text("clip.wav cannot be part")
    expect(page.locator("#chat-files li")).to_have_count(1)
    page.get_by_role("button", name="End", exact=True).click()
