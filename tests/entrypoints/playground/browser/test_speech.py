"""Reading aloud and voices: what is beyond a request and its answer; in headless Chromium."""

import re
from pathlib import Path
from typing import Any

import soundfile

from sglang_omni.pipeline.request import AudioDelta, Finished
from tests.entrypoints.http.fake import USAGE, FakeBackend, playing, tone
from tests.testing.browser import barriers, picture_of


def test_a_text_that_is_read_has_its_progress_and_a_file(
    page: Any, expect: Any, backend: FakeBackend, tmp_path: Path
) -> None:
    backend.script = playing(*(AudioDelta(tone()) for _ in range(6)), Finished("stop", USAGE))
    page.get_by_role("tab", name="Read aloud").click()
    page.get_by_label("Text", exact=True).fill("A long text.")
    page.get_by_role("button", name="Read aloud").click()
    bar = page.get_by_role("progressbar", name="Read so far")
    expect(bar).to_have_js_property("max", 6 * len(tone()) / 44_100)
    expect(page.locator("#read-state")).to_have_text("Done")
    expect(page.get_by_text("1.9 of 1.9 s")).to_be_visible()
    assert barriers(page) == []
    with page.expect_download() as download:
        page.get_by_role("tabpanel").get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "speech.wav")
    assert soundfile.info(tmp_path / "speech.wav").frames == 6 * len(tone())
    page.get_by_role("tabpanel").get_by_role("button", name="Show as code").click()
    expect(page.get_by_role("dialog").locator("pre")).to_contain_text("/v1/audio/speech")


def test_a_voice_is_heard_before_it_is_used(page: Any, expect: Any, backend: FakeBackend) -> None:
    page.get_by_role("tab", name="Voices").click()
    page.get_by_role("button", name="Hear the voice river").click()
    expect(page.locator("#last-figures")).to_contain_text("First sound")
    assert (backend.requests[-1].text, backend.requests[-1].voice.name) == (
        "This is how I sound.",
        "river",
    )
    page.get_by_role("tab", name="Conversation").click()
    expect(page.get_by_role("combobox", name="Voice")).to_have_value("river")


def test_a_voice_is_recorded_and_cloned(page: Any, expect: Any, backend: FakeBackend) -> None:
    page.get_by_role("tab", name="Voices").click()
    page.get_by_role("button", name="Record", exact=True).click()
    stop = page.get_by_role("button", name="Stop recording")
    expect(stop).to_contain_text("2.")
    picture_of(page, "recording")
    assert barriers(page) == []
    stop.click()
    # How long it has become until then depends on how busy this machine is.
    expect(page.get_by_text(re.compile(r"^Recorded [2-9]\.\d s"))).to_be_visible()
    page.get_by_label("Name").fill("myself")
    page.get_by_label("The speaker agrees").check()
    page.get_by_role("button", name="Clone").click()
    expect(page.locator("#voices-state")).to_have_text("myself can speak now")
    assert len(backend.cloner.cloned) == 1


def test_a_recording_ends_when_it_is_stopped(page: Any, expect: Any) -> None:
    """On a busy machine the browser takes a while to close the microphone."""
    page.evaluate("""() => {
        const close = AudioContext.prototype.close;
        AudioContext.prototype.close = async function () {
            await new Promise((done) => setTimeout(done, 1000));
            return close.call(this);
        };
    }""")
    page.get_by_role("tab", name="Voices").click()
    page.get_by_role("button", name="Record", exact=True).click()
    stop = page.get_by_role("button", name="Stop recording")
    expect(stop).to_contain_text("1.")
    stop.click()
    expect(page.get_by_text(re.compile(r"^Recorded [1-9]"))).to_be_visible()
    expect(stop).to_have_count(0)
    expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()


def test_a_voice_needs_a_recording(page: Any, expect: Any, backend: FakeBackend) -> None:
    page.get_by_role("tab", name="Voices").click()
    page.get_by_label("Name").fill("myself")
    page.get_by_label("The speaker agrees").check()
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_role("alert")).to_have_text("Choose a recording, or record one.")
    assert backend.cloner.cloned == []
