"""The spelling of the protocol before its general availability."""

from sglang_omni.entrypoints.realtime.beta import is_beta_requested
from sglang_omni.entrypoints.realtime.protocol_version import BETA
from tests.entrypoints.realtime.harness import base64_of, kinds, loud, talking


def test_it_is_asked_for_by_a_header_or_a_subprotocol() -> None:
    assert is_beta_requested({"openai-beta": "realtime=v1"}, [])
    assert is_beta_requested({}, ["realtime", "openai-beta.realtime-v1"])
    assert not is_beta_requested({"openai-beta": "assistants=v2"}, ["realtime"])


async def test_a_flat_session() -> None:
    async with talking(BETA) as talk:
        session = talk.events[0]["session"]
        assert session["modalities"] == ["text", "audio"]
        assert session["input_audio_format"] == session["output_audio_format"] == "pcm16"
        assert session["turn_detection"]["silence_duration_ms"] == 500
        await talk.send(
            "session.update",
            session={
                "modalities": ["text"],
                "voice": "river",
                "input_audio_format": "g711_ulaw",
                "output_audio_format": "g711_alaw",
                "input_audio_transcription": {"model": "whisper-1"},
                "turn_detection": None,
                "temperature": 0.8,
                "max_response_output_tokens": 7,
            },
        )
        session = talk.of("session.updated")[0]["session"]
        assert session["modalities"] == ["text"]
        assert session["voice"] == "river"
        assert session["input_audio_format"] == "g711_ulaw"
        assert session["output_audio_format"] == "g711_alaw"
        assert session["input_audio_transcription"]["model"] == "org/ming"
        assert session["turn_detection"] is None
        assert session["max_response_output_tokens"] == 7
        await talk.send("session.update", session={"input_audio_format": "mp3"})
        assert talk.error["param"] == "session.audio.input.format.type"


async def test_the_older_names_of_events_and_parts() -> None:
    async with talking(BETA) as talk:
        await talk.write("a")
        await talk.send("response.create", response={"modalities": ["text", "audio"]})
        assert kinds(talk.events[2:]) == [
            "conversation.item.created",
            "response.created",
            "response.output_item.added",
            "conversation.item.created",
            "response.content_part.added",
            "response.audio_transcript.delta",
            "response.audio.delta",
            "response.audio.done",
            "response.audio_transcript.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.done",
            "rate_limits.updated",
        ]
        done = talk.of("response.done")[0]["response"]
        assert done["output"][0]["content"] == [{"type": "audio", "transcript": "a "}]
        assert (done["voice"], done["output_audio_format"]) == ("prompt", "pcm16")
        await talk.send("response.create", response={"modalities": ["text"]})
        assert talk.of("response.text.done")[0]["text"] == " "


async def test_what_was_not_renamed() -> None:
    async with talking(BETA) as talk:
        await talk.send("session.update", session={"turn_detection": None})
        await talk.send("input_audio_buffer.append", audio=base64_of(loud(0.5)))
        events = await talk.send("input_audio_buffer.commit")
        assert kinds(events) == ["input_audio_buffer.committed", "conversation.item.created"]
        assert events[1]["item"]["content"][0]["type"] == "input_audio"
