"""Answers that are spoken faster or slower: what is sent, and the account that is kept of it."""

import base64

import pytest

from sglang_omni.entrypoints.realtime.protocol_version import BETA
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    TextDelta,
    TranscriptDelta,
    Usage,
)
from tests.entrypoints.http.fake import hanging, playing, tone
from tests.entrypoints.realtime.harness import Talk, loud, talking


def say(word: str) -> tuple[Event, ...]:
    """Return a word and a second of its sound."""
    sound = [AudioDelta(tone(1 / 3)) for _ in range(3)]
    return (TextDelta(word), TranscriptDelta(word), *sound)


WORD = (*say("One. "), *say("Two. "), *say("Six. "))
DONE = Finished("stop", Usage())
SPEEDS = [0.25, 0.5, 1.0, 1.5]


async def at_speed(talk: Talk, speed: float) -> None:
    await talk.update(audio={"output": {"speed": speed}})
    assert talk.of("session.updated")[-1]["session"]["audio"]["output"]["speed"] == speed


async def answer(talk: Talk) -> str:
    """Have a question answered; the id of the item."""
    await talk.write("go on")
    await talk.send("response.create")
    await talk.until(lambda: bool(talk.of("response.done")))
    item: str = talk.of("response.done")[-1]["response"]["output"][0]["id"]
    return item


def sent_ms(talk: Talk) -> float:
    """How long the sound of all deltas plays."""
    deltas = talk.of("response.output_audio.delta")
    return sum(len(base64.b64decode(event["delta"])) for event in deltas) / 48


async def heard(talk: Talk, item: str) -> str:
    (got,) = await talk.send("conversation.item.retrieve", item_id=item)
    transcript: str = got["item"]["content"][0]["transcript"]
    return transcript


@pytest.mark.parametrize("speed", SPEEDS)
async def test_an_answer_lasts_as_much_longer_or_shorter(speed: float) -> None:
    async with talking() as talk:
        await at_speed(talk, speed)
        talk.backend.script = playing(*WORD, DONE)
        item = await answer(talk)
        assert sent_ms(talk) * speed == pytest.approx(3000, abs=25)
        assert await heard(talk, item) == "One. Two. Six. "
        assert talk.sender.sent_ms(item) == pytest.approx(sent_ms(talk))


@pytest.mark.parametrize("speed", SPEEDS)
async def test_truncation_counts_in_the_time_of_what_was_sent(speed: float) -> None:
    async with talking() as talk:
        await at_speed(talk, speed)
        talk.backend.script = playing(*WORD, DONE)
        item = await answer(talk)
        cut = {"item_id": item, "content_index": 0}
        for words, words_ms in (("One. Two. ", 2050), ("One. ", 1050), ("", 500)):
            end = int(words_ms / speed)
            (done,) = await talk.send("conversation.item.truncate", **cut, audio_end_ms=end)
            assert done["audio_end_ms"] == end
            assert await heard(talk, item) == words
        too_much = int(sent_ms(talk)) + 2
        await talk.send("conversation.item.truncate", **cut, audio_end_ms=too_much)
        assert talk.error["param"] == "audio_end_ms"


@pytest.mark.parametrize("speed", SPEEDS)
async def test_speech_over_an_answer_leaves_the_words_that_were_heard(speed: float) -> None:
    async with talking() as talk:
        await at_speed(talk, speed)
        talk.backend.script = hanging(*WORD)
        await talk.write("go on")
        await talk.send("response.create")
        await talk.until(lambda: sent_ms(talk) * speed > 2700)
        await talk.clock.advance(1.1 / speed)
        await talk.say(loud(0.1))
        await talk.until(lambda: bool(talk.of("response.done")))
        content = talk.of("response.done")[0]["response"]["output"][0]["content"]
        assert content == [{"type": "output_audio", "transcript": "One. "}]


async def test_a_response_may_have_a_speed_of_its_own() -> None:
    async with talking() as talk:
        talk.backend.script = playing(*WORD, DONE)
        await talk.write("go on")
        output = {"audio": {"output": {"speed": 1.5}}}
        await talk.send("response.create", response=output)
        await talk.until(lambda: bool(talk.of("response.done")))
        assert sent_ms(talk) == pytest.approx(2000, abs=25)


async def test_a_client_of_the_beta_names_it_flat() -> None:
    async with talking(BETA) as talk:
        await talk.send("session.update", session={"speed": 1.2})
        assert talk.of("session.updated")[-1]["session"]["speed"] == 1.2
