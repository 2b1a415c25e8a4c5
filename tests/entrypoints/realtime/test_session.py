"""Every scenario of the protocol: which events come, in which order, and what they say."""

import asyncio
import base64
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.entrypoints.realtime.audio_codec import INPUT_SAMPLE_RATE, decode_wav
from sglang_omni.entrypoints.realtime.protocol_version import GA
from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    MediaPart,
    TextDelta,
    TextPart,
    TranscriptDelta,
    Usage,
)
from sglang_omni.protocol.errors import ContextExceeded, EngineFailed
from sglang_omni.voices.registry import UploadedRecording
from tests.entrypoints.http.fake import EVERYTHING, TONE_S, hanging, playing, tone
from tests.entrypoints.realtime.harness import Talk, base64_of, kinds, loud, talking
from tests.entrypoints.realtime.sounds import silence
from tests.testing.family import CAPABILITIES

ANSWERED = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
]
SPOKEN = [
    *ANSWERED,
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
]
SPOKEN_END = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
    "rate_limits.updated",
]
COMMITTED = [
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]
HEARD = ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", *COMMITTED]
SPEAKING = (TextDelta("One. "), TranscriptDelta("One. "), AudioDelta(tone()))


def last_message(talk: Talk) -> Any:
    return talk.backend.requests[-1].messages[-1]


async def test_a_session_begins_with_its_settings() -> None:
    async with talking() as talk:
        assert kinds(talk.events) == ["session.created", "conversation.created"]
        session = talk.events[0]["session"]
        assert session["id"].startswith("sess_")
        assert session["model"] == "org/ming"
        assert session["output_modalities"] == ["audio"]
        assert session["audio"]["input"]["turn_detection"]["type"] == "server_vad"
        assert session["audio"]["output"]["voice"] == "prompt"
        assert len({event["event_id"] for event in talk.events}) == 2


async def test_a_written_turn_with_a_spoken_answer() -> None:
    async with talking() as talk:
        assert kinds(await talk.write("a b")) == COMMITTED[1:]
        events = await talk.send("response.create")
        assert kinds(events) == [*SPOKEN, *SPOKEN_END]
        done = talk.of("response.done")[0]["response"]
        assert done["status"] == "completed"
        assert done["output"][0]["content"] == [{"type": "output_audio", "transcript": "a b "}]
        assert done["usage"]["output_token_details"] == {"text_tokens": 5, "audio_tokens": 4}
        assert done["usage"]["total_tokens"] == 16
        indices = {(e.get("output_index", 0), e.get("content_index", 0)) for e in events}
        assert indices == {(0, 0)}
        assert talk.backend.running == 0


async def test_a_written_answer() -> None:
    async with talking() as talk:
        await talk.update(output_modalities=["text"])
        await talk.write("a b")
        events = await talk.send("response.create")
        assert kinds(events) == [
            *ANSWERED,
            "response.output_text.delta",
            "response.output_text.done",
            *SPOKEN_END[2:],
        ]
        assert talk.of("response.output_text.done")[0]["text"] == "a b "
        assert talk.backend.requests[0].voice is None


async def test_a_spoken_turn_is_found_committed_and_answered() -> None:
    async with talking() as talk:
        events = await talk.turn()
        assert kinds(events)[: len(HEARD) + 1] == [*HEARD, "response.created"]
        names = {event["item_id"] for event in events[:3]} | {events[3]["item"]["id"]}
        assert len(names) == 1
        started, stopped = events[:2]
        assert started["audio_start_ms"] == 0
        assert 1480 <= stopped["audio_end_ms"] <= 1600
        (clip,) = last_message(talk).content
        assert isinstance(clip, MediaPart)
        assert clip.kind == "audio"
        assert talk.backend.requests[0].tenant == "me"


async def test_padding_and_silence_are_live() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "prefix_padding_ms": 96, "silence_duration_ms": 992}
        await talk.update(audio={"input": {"turn_detection": vad}})
        events = await talk.say(silence(1.024), loud(0.512), silence(0.6))
        assert kinds(events) == ["input_audio_buffer.speech_started"]
        assert events[0]["audio_start_ms"] == 1024 - 96
        stopped, *_ = await talk.say(silence(0.6))
        assert stopped["type"] == "input_audio_buffer.speech_stopped"
        assert 1536 + 992 <= stopped["audio_end_ms"] <= 1536 + 992 + 64


async def test_a_turn_may_be_left_unanswered() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "create_response": False}
        await talk.update(audio={"input": {"turn_detection": vad}})
        assert kinds(await talk.turn()) == HEARD
        assert talk.backend.requests == []


async def test_push_to_talk() -> None:
    async with talking() as talk:
        await talk.update(audio={"input": {"turn_detection": None}})
        assert await talk.say(loud(1.0), silence(2.0)) == []
        assert kinds(await talk.send("input_audio_buffer.commit")) == COMMITTED
        assert kinds(await talk.send("response.create"))[-1] == "rate_limits.updated"
        assert isinstance(last_message(talk).content[0], MediaPart)
        await talk.say(loud(1.0))
        cleared = await talk.send("input_audio_buffer.clear")
        assert kinds(cleared) == ["input_audio_buffer.cleared"]
        await talk.send("input_audio_buffer.commit")
        assert talk.error["code"] == "input_audio_buffer_commit_empty"


async def test_speech_stops_the_answer_and_keeps_what_was_heard() -> None:
    async with talking() as talk:
        talk.backend.script = hanging(
            *SPEAKING, TranscriptDelta("Two three. "), AudioDelta(tone()), AudioDelta(tone())
        )
        await talk.write("go on")
        await talk.send("response.create")
        assert talk.backend.running == 1
        await talk.clock.advance(0.4)
        events = await talk.say(loud(0.1))
        assert kinds(events) == ["input_audio_buffer.speech_started", *SPOKEN_END]
        assert talk.backend.running == 0
        response = talk.of("response.done")[0]["response"]
        assert response["status"] == "cancelled"
        assert response["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
        item = response["output"][0]
        assert item["status"] == "incomplete"
        # 320 ms of the first segment, and 80 of the 640 of the second.
        assert item["content"][0]["transcript"] == "One. "
        talk.backend.script = playing(Finished("stop", Usage()))
        await talk.say(silence(0.6))
        said = [m.content[0] for m in talk.backend.requests[-1].messages]
        assert [part.text for part in said if isinstance(part, TextPart)][1:] == ["go on", "One. "]


async def test_sound_that_has_not_left_is_taken_back() -> None:
    async with talking() as talk:
        talk.backend.script = hanging(*SPEAKING * 3)
        await talk.write("go on")
        talk.reading.clear()
        await talk.send("response.create")
        # The first event is on its way, everything else waits behind it.
        await talk.clock.advance(5)
        await talk.say(loud(0.1))
        talk.reading.set()
        await talk.until(lambda: bool(talk.of("rate_limits.updated")))
        assert talk.of("response.output_audio.delta") == []
        content = talk.of("response.done")[0]["response"]["output"][0]["content"]
        assert content == [{"type": "output_audio", "transcript": ""}]


async def test_speech_over_an_answer_that_is_complete_but_still_plays() -> None:
    async with talking() as talk:
        talk.backend.script = playing(*SPEAKING, *SPEAKING, *SPEAKING, Finished("stop", Usage()))
        await talk.write("go on")
        await talk.send("response.create")
        name = talk.of("response.done")[0]["response"]["output"][0]["id"]
        await talk.clock.advance(0.65)
        assert kinds(await talk.say(loud(0.1))) == ["input_audio_buffer.speech_started"]
        (got,) = await talk.send("conversation.item.retrieve", item_id=name)
        assert got["item"]["content"][0]["transcript"] == "One. One. "
        # The client knows better than the clock.
        await talk.send(
            "conversation.item.truncate", item_id=name, content_index=0, audio_end_ms=330
        )
        (got,) = await talk.send("conversation.item.retrieve", item_id=name)
        assert got["item"]["content"][0]["transcript"] == "One. "


async def test_an_answer_that_must_not_be_interrupted_is_not() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "interrupt_response": False}
        await talk.update(audio={"input": {"turn_detection": vad}})
        finish = asyncio.Event()

        async def waiting(request: Any) -> Any:
            yield TranscriptDelta("One. ")
            await finish.wait()
            yield Finished("stop", Usage())

        talk.backend.script = waiting
        await talk.write("go on")
        await talk.send("response.create")
        assert kinds(await talk.turn()) == HEARD
        assert talk.backend.running == 1
        finish.set()
        await talk.until(lambda: len(talk.of("response.done")) == 2)
        assert [e["response"]["status"] for e in talk.of("response.done")] == ["completed"] * 2
        assert isinstance(last_message(talk).content[0], MediaPart)


async def test_the_client_cancels() -> None:
    async with talking() as talk:
        talk.backend.script = hanging(*SPEAKING)
        await talk.write("go on")
        (created, *_) = await talk.send("response.create")
        await talk.send("response.cancel", response_id="resp_other", event_id="mine")
        assert talk.error["code"] == "response_cancel_not_active"
        assert talk.error["event_id"] == "mine"
        name = created["response"]["id"]
        assert kinds(await talk.send("response.cancel", response_id=name)) == SPOKEN_END
        done = talk.of("response.done")[0]["response"]
        assert done["status_details"]["reason"] == "client_cancelled"
        # It may go on to play what it has.
        assert done["output"][0]["content"][0]["transcript"] == "One. "
        assert talk.backend.running == 0
        await talk.send("response.cancel")
        assert talk.error["code"] == "response_cancel_not_active"


async def test_an_answer_that_is_done_is_not_under_way() -> None:
    """Not even within the turn of the event loop that ends it, in which many events may be read."""

    async def leaving(request: Any) -> Any:
        try:
            yield TranscriptDelta("One. ")
            yield Finished("stop", Usage())
        finally:
            # An engine takes a moment to let go.
            for _ in range(3):
                await asyncio.sleep(0)

    queued: list[str] = []

    def seen(event: dict[str, Any]) -> list[dict[str, Any]]:
        queued.append(event["type"])
        return [event]

    async with talking(replace(GA, to_client=seen)) as talk:
        talk.backend.script = leaving
        await talk.write("go on")
        await talk.session.handle('{"type": "response.create"}')
        while "response.done" not in queued:
            await asyncio.sleep(0)
        await talk.session.handle('{"type": "response.cancel"}')
        await talk.session.handle('{"type": "response.create"}')
        await talk.until(lambda: len(talk.of("response.done")) == 2)
        assert talk.error["code"] == "response_cancel_not_active"
        assert [e["response"]["status"] for e in talk.of("response.done")] == ["completed"] * 2
        assert talk.backend.running == 0


async def test_one_response_at_a_time() -> None:
    async with talking() as talk:
        talk.backend.script = hanging()
        await talk.write("go on")
        await talk.send("response.create")
        await talk.send("response.create")
        assert talk.error["code"] == "conversation_already_has_active_response"
        assert talk.backend.running == 1


async def test_an_answer_that_is_cut_for_its_length_is_incomplete() -> None:
    async with talking() as talk:
        talk.backend.script = playing(*SPEAKING, Finished("length", Usage()))
        await talk.write("go on")
        await talk.send("response.create", response={"max_output_tokens": 7})
        assert talk.backend.requests[0].sampling.max_tokens == 7
        response = talk.of("response.done")[0]["response"]
        assert response["status"] == "incomplete"
        assert response["status_details"]["reason"] == "max_output_tokens"
        assert response["max_output_tokens"] == 7


@pytest.mark.parametrize(
    ("error", "code"), [(EngineFailed("it died"), "engine_failed"), (KeyError(), "internal_error")]
)
async def test_an_answer_that_fails_says_so_and_the_session_goes_on(
    error: Exception, code: str
) -> None:
    async with talking() as talk:
        talk.backend.script = playing(*SPEAKING, then=error)
        await talk.write("go on")
        events = await talk.send("response.create")
        assert kinds(events) == [*SPOKEN, *SPOKEN_END]
        response = talk.of("response.done")[0]["response"]
        assert response["status"] == "failed"
        assert response["status_details"]["error"]["code"] == code
        talk.backend.script = playing(Finished("stop", Usage()))
        events = await talk.send("response.create")
        assert kinds(events) == ["response.created", "response.done", "rate_limits.updated"]


async def test_a_context_that_is_too_long_loses_its_oldest_half() -> None:
    async with talking() as talk:

        async def short_of_memory(request: Any) -> Any:
            if len(request.messages) > 3:
                raise ContextExceeded("too long")
            yield Finished("stop", Usage())

        talk.backend.script = short_of_memory
        for word in "abcdefgh":
            await talk.write(word)
        await talk.send("response.create")
        assert talk.of("response.done")[0]["response"]["status"] == "completed"
        texts = [m.content[0].text for m in talk.backend.requests[-1].messages[1:]]
        assert texts == ["g", "h"]
        await talk.update(truncation="disabled")
        await talk.send("response.create")
        details = talk.of("response.done")[1]["response"]["status_details"]
        assert details["error"]["code"] == "context_length_exceeded"


async def test_a_response_beside_the_conversation() -> None:
    async with talking() as talk:
        await talk.write("not this")
        referred = talk.of("conversation.item.added")[0]["item"]["id"]
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
        events = await talk.send(
            "response.create",
            response={
                "conversation": "none",
                "input": [{"type": "item_reference", "id": referred}, said],
                "metadata": {"for": "me"},
                "instructions": "Judge.",
                "output_modalities": ["text"],
            },
        )
        assert not [kind for kind in kinds(events) if kind.startswith("conversation.")]
        done = talk.of("response.done")[0]["response"]
        assert (done["conversation_id"], done["metadata"]) == (None, {"for": "me"})
        texts = [m.content[0].text for m in talk.backend.requests[0].messages]
        assert texts == ["Judge.", "not this", "a"]
        await talk.send("response.create", response={"input": []})
        assert [m.role for m in talk.backend.requests[1].messages] == ["system", "user"]


async def test_items_are_created_retrieved_deleted_and_truncated() -> None:
    async with talking() as talk:
        await talk.write("first")
        first = talk.of("conversation.item.added")[0]["item"]["id"]
        added, _ = await talk.write("zeroth", previous_item_id="root")
        assert added["previous_item_id"] is None
        audio = base64_of(loud(0.5))
        content = [{"type": "input_audio", "audio": audio}]
        item = {"type": "message", "role": "user", "id": "mine", "content": content}
        added, done = await talk.send("conversation.item.create", item=item)
        assert (added["previous_item_id"], done["item"]["id"]) == (first, "mine")
        (got,) = await talk.send("conversation.item.retrieve", item_id="mine")
        assert len(got["item"]["content"][0]["audio"]) > 1000
        (deleted,) = await talk.send("conversation.item.delete", item_id="mine")
        assert (deleted["type"], deleted["item_id"]) == ("conversation.item.deleted", "mine")
        await talk.send("conversation.item.retrieve", item_id="mine")
        assert talk.error["code"] == "item_retrieve_invalid_item_id"


async def test_truncation_has_limits() -> None:
    async with talking() as talk:
        talk.backend.script = playing(*SPEAKING, Finished("stop", Usage()))
        await talk.write("go on")
        await talk.send("response.create")
        spoken = talk.of("response.done")[0]["response"]["output"][0]["id"]
        written = talk.of("conversation.item.added")[0]["item"]["id"]
        cut = {"content_index": 0, "audio_end_ms": 100}
        for fields, param in (
            ({"item_id": spoken, **cut, "audio_end_ms": 400}, "audio_end_ms"),
            ({"item_id": spoken, **cut, "content_index": 1}, "content_index"),
            ({"item_id": written, **cut}, "content_index"),
            ({"item_id": "nobody", **cut}, "item_id"),
        ):
            await talk.send("conversation.item.truncate", **fields)
            assert talk.error["param"] == param
        (truncated,) = await talk.send("conversation.item.truncate", item_id=spoken, **cut)
        assert truncated["audio_end_ms"] == 100


async def test_transcription_waits_for_the_answer_and_is_kept() -> None:
    async with talking() as talk:
        talk.backend.capabilities = EVERYTHING
        await talk.update(audio={"input": {"transcription": {"model": "x", "language": "en"}}})
        assert talk.of("session.updated")[0]["session"]["audio"]["input"]["transcription"] == {
            "model": "org/ming",
            "language": "en",
            "prompt": None,
        }
        release = asyncio.Event()

        async def script(request: Any) -> Any:
            if request.id.startswith("asr"):
                yield TextDelta(" what was said")
            else:
                await release.wait()
            yield Finished("stop", Usage(3, 0, 4))

        talk.backend.script = script
        await talk.turn()
        assert [request.id[:4] for request in talk.backend.requests] == ["resp"]
        release.set()
        await talk.until(
            lambda: bool(talk.of("conversation.item.input_audio_transcription.completed"))
        )
        assert kinds(talk.events[-2:]) == [
            "conversation.item.input_audio_transcription.delta",
            "conversation.item.input_audio_transcription.completed",
        ]
        completed = talk.events[-1]
        assert completed["transcript"] == "what was said"
        assert completed["usage"]["total_tokens"] == 7
        asked, clip = talk.backend.requests[1].messages[0].content
        assert asked.text == f"{CAPABILITIES.transcription_prompt} The language is en."
        assert clip.kind == "audio"
        (got,) = await talk.send("conversation.item.retrieve", item_id=completed["item_id"])
        assert got["item"]["content"][0]["transcript"] == "what was said"


async def test_a_transcription_that_the_checkpoint_cannot_make_is_refused() -> None:
    async with talking() as talk:
        talk.backend.capabilities = replace(
            CAPABILITIES, transcription_languages=("en",), transcription_hints=False
        )
        place = "session.audio.input.transcription"
        await talk.update(audio={"input": {"transcription": {"language": "de"}}})
        assert talk.error["param"] == f"{place}.language"
        await talk.update(audio={"input": {"transcription": {"prompt": "Mill."}}})
        assert talk.error["param"] == f"{place}.prompt"
        await talk.update(audio={"input": {"transcription": {"language": "en"}}})
        assert talk.of("session.updated")


async def test_an_answer_stops_a_transcription_which_is_done_again_afterwards() -> None:
    async with talking() as talk:
        await talk.update(
            audio={"input": {"transcription": {}, "turn_detection": None}},
        )
        talk.backend.script = hanging(TextDelta("half"))
        await talk.say(loud(0.5))
        await talk.send("input_audio_buffer.commit")
        assert [request.id[:3] for request in talk.backend.requests] == ["asr"]
        assert talk.backend.running == 1
        talk.backend.script = playing(TextDelta("all"), Finished("stop", Usage()))
        await talk.send("response.create")
        await talk.until(
            lambda: bool(talk.of("conversation.item.input_audio_transcription.completed"))
        )
        assert [request.id[:3] for request in talk.backend.requests] == ["asr", "res", "asr"]
        assert talk.events[-1]["transcript"] == "all"
        assert talk.backend.running == 0


async def test_a_transcription_that_fails_says_so() -> None:
    async with talking() as talk:
        await talk.update(audio={"input": {"transcription": {}, "turn_detection": None}})
        talk.backend.script = playing(then=EngineFailed("it died"))
        await talk.say(loud(0.5))
        await talk.send("input_audio_buffer.commit")
        (failed,) = talk.of("conversation.item.input_audio_transcription.failed")
        assert failed["error"]["code"] == "engine_failed"


async def test_when_nobody_speaks_the_model_does() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "idle_timeout_ms": 5000}
        await talk.update(audio={"input": {"turn_detection": vad}})
        talk.backend.script = playing(*SPEAKING, Finished("stop", Usage()))
        await talk.write("go on")
        await talk.send("response.create")
        await talk.say(silence(2.0))
        before = len(talk.events)
        # The answer plays for 320 ms first.
        await talk.clock.advance(5.3)
        assert len(talk.events) == before
        await talk.clock.advance(0.1)
        events = talk.events[before:]
        assert kinds(events)[:5] == [
            "input_audio_buffer.timeout_triggered",
            *COMMITTED,
            "response.created",
        ]
        assert events[0]["item_id"] == events[1]["item_id"] == events[2]["item"]["id"]
        assert len(talk.backend.requests) == 2


async def test_an_answer_cancelled_before_its_first_step_ends_as_any_other() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "idle_timeout_ms": 5000}
        await talk.update(audio={"input": {"turn_detection": vad}})
        talk.backend.script = playing(*SPEAKING, Finished("stop", Usage()))
        await talk.session.handle('{"type": "response.create"}')
        await talk.session.handle('{"type": "response.cancel"}')
        assert talk.backend.requests == []
        await talk.until(lambda: talk.of("response.done") != [])
        (done,) = talk.of("response.done")
        assert done["response"]["status"] == "cancelled"
        assert done["response"]["output"] == []
        await talk.clock.advance(5.1)
        assert len(talk.of("input_audio_buffer.timeout_triggered")) == 1


async def test_speech_stops_the_wait_of_an_idle_client() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "idle_timeout_ms": 5000}
        await talk.update(audio={"input": {"turn_detection": vad}})
        talk.backend.script = playing(Finished("stop", Usage()))
        await talk.send("response.create")
        await talk.say(loud(0.5))
        await talk.clock.advance(60)
        assert talk.of("input_audio_buffer.timeout_triggered") == []


async def test_g711_both_ways() -> None:
    async with talking() as talk:
        await talk.update(
            audio={
                "input": {"format": {"type": "audio/pcmu"}, "turn_detection": None},
                "output": {"format": {"type": "audio/pcma"}},
            }
        )
        audio = np.full(8000, 0x10, np.uint8).tobytes()
        await talk.send("input_audio_buffer.append", audio=base64.b64encode(audio).decode())
        await talk.send("input_audio_buffer.commit")
        await talk.send("response.create")
        deltas = [base64.b64decode(e["delta"]) for e in talk.of("response.output_audio.delta")]
        assert len(b"".join(deltas)) == pytest.approx(TONE_S * 8000, abs=2)
        form = talk.of("response.done")[0]["response"]["audio"]["output"]["format"]
        assert form == {"type": "audio/pcma"}


async def test_a_stored_voice_answers() -> None:
    async with talking() as talk:
        part = MediaPart("audio", ("data:,RIFF",), "audio_sample")
        await talk.backend.voice_registry.add(
            UploadedRecording("Ada", part, None, "she agreed", None), ()
        )
        await talk.update(audio={"output": {"voice": "Ada"}})
        await talk.write("go on")
        await talk.send("response.create")
        assert isinstance(talk.backend.requests[0].voice.source, ClonedVoice)
        await talk.update(audio={"output": {"voice": "Bob"}})
        assert talk.error["code"] == "voice_not_found"


async def test_a_voice_that_was_heard_cannot_change() -> None:
    async with talking() as talk:
        await talk.update(audio={"output": {"voice": "river"}})
        await talk.write("go on")
        await talk.send("response.create")
        assert talk.backend.requests[0].voice.name == "river"
        await talk.update(audio={"output": {"voice": "prompt"}})
        assert talk.error["code"] == "cannot_update_voice"
        await talk.send("response.create", response={"audio": {"output": {"voice": "prompt"}}})
        assert talk.error["param"] == "response.audio.output.voice"
        await talk.update(instructions="Whisper.", audio={"output": {"voice": "river"}})
        assert talk.of("session.updated")[-1]["session"]["instructions"] == "Whisper."


@pytest.mark.parametrize(
    ("session", "param", "code"),
    [
        ({"model": "other"}, "model", "model_not_found"),
        ({"audio": {"output": {"voice": "nobody"}}}, "session.audio.output.voice", None),
        ({"audio": {"output": {"speed": 1.6}}}, "session.audio.output.speed", None),
        ({"audio": {"output": {"speed": 0.2}}}, "session.audio.output.speed", None),
        ({"output_modalities": ["text", "audio"]}, "session.output_modalities", None),
        ({"max_output_tokens": 0}, "session.max_output_tokens", None),
        ({"prompt": {"id": "p"}}, "session.prompt", None),
        ({"truncation": {"type": "summary"}}, "session.truncation", None),
        (
            {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}},
            "session.audio.input.format.rate",
            None,
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 2}}}},
            "session.audio.input.turn_detection.threshold",
            None,
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "clairvoyance"}}}},
            "session.audio.input.turn_detection.type",
            None,
        ),
        ({"volume": 11}, "session.volume", "unknown_parameter"),
        ({"type": "translation"}, "session.type", None),
        (
            {"audio": {"input": {"transcription": {"languages": "en"}}}},
            "session.audio.input.transcription.languages",
            None,
        ),
    ],
)
async def test_settings_that_cannot_be_are_refused_by_name(
    session: dict[str, Any], param: str, code: str | None
) -> None:
    async with talking() as talk:
        await talk.update(**session)
        assert talk.error["param"] == param
        assert code is None or talk.error["code"] == code
        assert talk.of("session.updated") == []


async def test_settings_that_are_not_named_stay() -> None:
    async with talking() as talk:
        vad = {"type": "semantic_vad", "eagerness": "high"}
        await talk.update(audio={"input": {"turn_detection": vad}}, instructions="Be brief.")
        await talk.update(audio={"output": {"voice": "river"}}, tracing="auto")
        session = talk.of("session.updated")[-1]["session"]
        assert session["instructions"] == "Be brief."
        assert session["audio"]["input"]["turn_detection"]["eagerness"] == "high"
        assert session["tracing"] is None


async def test_an_idle_client_is_left_alone_once_it_says_so() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "idle_timeout_ms": 5000}
        await talk.update(audio={"input": {"turn_detection": vad}})
        talk.backend.script = playing(Finished("stop", Usage()))
        await talk.send("response.create")
        await talk.update(audio={"input": {"turn_detection": None}})
        await talk.clock.advance(60)
        assert talk.of("input_audio_buffer.timeout_triggered") == []
        assert len(talk.backend.requests) == 1


async def test_a_conversation_that_is_full_says_so() -> None:
    async with talking(conversation_bytes=100) as talk:
        await talk.write("x" * 90)
        await talk.write("x" * 20)
        assert talk.error["code"] == "conversation_full"
        await talk.write("x" * 10)
        assert len(talk.of("conversation.item.done")) == 2


def sound_of(request: Any) -> np.ndarray:
    """Return the samples of a request's last message, which is sound alone."""
    (part,) = request.messages[-1].content
    assert isinstance(part, MediaPart)
    (wav,) = part.sources
    assert isinstance(wav, bytes)
    return decode_wav(wav)


async def test_speech_right_after_a_turn_takes_its_answer_back() -> None:
    async with talking() as talk:
        talk.backend.script = hanging()
        await talk.turn()
        assert talk.backend.running == 1
        events = await talk.say(loud(0.2))
        assert kinds(events) == [
            "input_audio_buffer.speech_started",
            "response.done",
            "rate_limits.updated",
        ]
        assert talk.of("response.done")[0]["response"]["output"] == []
        talk.backend.script = playing(Finished("stop", Usage()))
        await talk.say(silence(0.6))
        # Both halves of what was said are the question now, in one piece.
        messages = talk.backend.requests[-1].messages
        assert [message.role for message in messages] == ["system", "user"]
        before, together = (sound_of(one) for one in talk.backend.requests[-2:])
        assert len(together) > len(before) + int(0.2 * INPUT_SAMPLE_RATE)
        np.testing.assert_array_equal(together[: len(before)], before)


async def test_closing_in_the_middle_of_everything_leaves_no_task() -> None:
    async with talking() as talk:
        vad = {"type": "server_vad", "idle_timeout_ms": 5000}
        await talk.update(audio={"input": {"turn_detection": vad, "transcription": {}}})
        talk.backend.script = playing(Finished("stop", Usage()))
        await talk.turn()
        talk.backend.script = hanging(*SPEAKING)
        await talk.send("response.create")
        await talk.session.close()
        assert talk.backend.running == 0
        # The writer of this test's own, and the test.
        assert len(asyncio.all_tasks()) == 2


async def test_sound_of_a_complete_answer_is_taken_back_too() -> None:
    async with talking() as talk:
        talk.backend.script = playing(*SPEAKING, Finished("stop", Usage()))
        await talk.write("go on")
        talk.reading.clear()
        await talk.send("response.create")
        assert talk.backend.running == 0
        await talk.say(loud(0.1))
        talk.reading.set()
        await talk.until(lambda: bool(talk.of("input_audio_buffer.speech_started")))
        assert talk.of("response.output_audio.delta") == []
        name = talk.of("response.done")[0]["response"]["output"][0]["id"]
        (got,) = await talk.send("conversation.item.retrieve", item_id=name)
        assert got["item"]["content"][0]["transcript"] == ""
        cut = {"item_id": name, "content_index": 0, "audio_end_ms": 1}
        await talk.send("conversation.item.truncate", **cut)
        assert talk.error["param"] == "audio_end_ms"


async def test_an_answer_after_an_interruption_is_heard_at_once() -> None:
    async with talking() as talk:
        talk.backend.script = hanging(*SPEAKING * 9)
        await talk.write("go on")
        await talk.send("response.create")
        await talk.clock.advance(0.1)
        await talk.say(loud(0.5), silence(0.6))
        # Nine patches were sent, and one was heard in part; the second answer does not wait.
        await talk.clock.advance(0.33)
        await talk.say(loud(0.5))
        first, second = (e["response"]["output"][0] for e in talk.of("response.done"))
        assert first["content"][0]["transcript"] == ""
        assert second["content"][0]["transcript"] == "One. "


async def test_an_answer_that_is_cancelled_before_it_began_is_over_as_well() -> None:
    async with talking() as talk:
        await talk.session.handle('{"type": "response.create"}')
        await talk.session.handle('{"type": "response.cancel"}')
        await talk.until(lambda: bool(talk.of("rate_limits.updated")))
        done = talk.of("response.done")[0]["response"]
        assert (done["status"], done["output"]) == ("cancelled", [])
        await talk.send("response.create")
        assert talk.of("response.done")[1]["response"]["status"] == "completed"


async def test_two_turns_in_one_event_are_two_turns() -> None:
    async with talking() as talk:
        events = await talk.say(loud(0.5), silence(0.6), loud(0.5), silence(0.6))
        await talk.until(lambda: len(talk.of("response.done")) == 2)
        assert [kind for kind in kinds(events) if kind.startswith("input")] == [*HEARD[:3]] * 2
        first, second = (e["response"] for e in talk.of("response.done"))
        assert first["status_details"]["reason"] == "turn_detected"
        assert second["status"] == "completed"
        # They are two items, and the model hears them in one piece.
        messages = talk.backend.requests[-1].messages
        assert [message.role for message in messages] == ["system", "user"]
        assert len(sound_of(talk.backend.requests[-1])) > INPUT_SAMPLE_RATE
