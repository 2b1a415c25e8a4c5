"""Words of a spoken answer that the model does not speak."""

from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    TextDelta,
    TranscriptDelta,
    UnspokenText,
    Usage,
)
from tests.entrypoints.http.fake import playing, tone
from tests.entrypoints.realtime.harness import talking

SCRIPT = playing(
    TextDelta("Say Привет."),
    TranscriptDelta("Say Привет."),
    UnspokenText(("Привет",)),
    AudioDelta(tone()),
    Finished("stop", Usage()),
)


async def test_a_notice_comes_between_the_transcript_and_its_audio() -> None:
    async with talking() as talk:
        talk.backend.script = SCRIPT
        await talk.write("What is hello?")
        await talk.send("response.create")
        await talk.until(lambda: bool(talk.of("response.done")))
        kinds = [event["type"] for event in talk.events]
        (notice,) = (event for event in talk.events if "notice" in event)
        at = talk.events.index(notice)
        # The events are OpenAI's: some clients take any other one for an error.
        transcript = "response.output_audio_transcript.delta"
        assert kinds[at - 1 : at + 2] == [transcript, transcript, "response.output_audio.delta"]
        assert notice["delta"] == ""
        delta = talk.events[at + 1]
        assert notice["notice"] == {
            "code": "unspoken_text",
            "message": "the model does not speak these words; the audio leaves them out: Привет",
            "words": ["Привет"],
        }
        for field in ("response_id", "item_id", "output_index", "content_index"):
            assert notice[field] == delta[field]


async def test_an_answer_in_text_has_no_notice() -> None:
    async with talking() as talk:
        await talk.update(output_modalities=["text"])
        talk.backend.script = SCRIPT
        await talk.write("What is hello?")
        await talk.send("response.create")
        await talk.until(lambda: bool(talk.of("response.done")))
        assert not any("notice" in event for event in talk.events)
