"""A session that writes down each turn, and answers none."""

from typing import Any

import pytest

from sglang_omni.entrypoints.realtime.protocol_version import BETA
from sglang_omni.pipeline.request import Finished, TextDelta, Usage
from tests.entrypoints.realtime.harness import Talk, kinds, talking

COMPLETED = "conversation.item.input_audio_transcription.completed"


async def hear(request: Any) -> Any:
    """The script of a recogniser."""
    yield TextDelta("what was said")
    yield Finished("stop", Usage(3, 0, 4))


async def become_transcription(talk: Talk, **audio_input: Any) -> list[dict[str, Any]]:
    return await talk.update(type="transcription", audio={"input": audio_input})


async def test_turns_are_written_down_and_not_answered() -> None:
    async with talking() as talk:
        talk.backend.script = hear
        (updated,) = await become_transcription(talk, turn_detection={"type": "server_vad"})
        session = updated["session"]
        assert session["type"] == "transcription"
        assert session["audio"].keys() == {"input"}
        assert session["audio"]["input"]["transcription"]["model"] == "org/ming"
        for _ in range(2):
            await talk.turn()
        await talk.until(lambda: len(talk.of(COMPLETED)) == 2)
        assert [event["transcript"] for event in talk.of(COMPLETED)] == ["what was said"] * 2
        assert [request.id[:3] for request in talk.backend.requests] == ["asr", "asr"]
        assert not talk.of("response.created")


async def test_a_turn_is_committed_by_hand() -> None:
    async with talking() as talk:
        talk.backend.script = hear
        await become_transcription(talk, turn_detection=None)
        await talk.turn()
        assert not talk.backend.requests
        await talk.send("input_audio_buffer.commit")
        await talk.until(lambda: bool(talk.of(COMPLETED)))
        await talk.send("input_audio_buffer.commit", event_id="last")
        assert talk.error["code"] == "input_audio_buffer_commit_empty"
        assert talk.error["event_id"] == "last"


async def test_it_may_answer_again() -> None:
    async with talking() as talk:
        await become_transcription(talk)
        await talk.update(type="realtime", output_modalities=["text"])
        assert talk.of("session.updated")[-1]["session"]["type"] == "realtime"
        await talk.turn()
        assert talk.of("response.created")


async def test_an_update_without_a_type_keeps_it() -> None:
    async with talking() as talk:
        await become_transcription(talk)
        await talk.send("session.update", session={"audio": {"input": {"transcription": None}}})
        session = talk.of("session.updated")[-1]["session"]
        assert session["type"] == "transcription"
        assert session["audio"]["input"]["transcription"]["model"] == "org/ming"


@pytest.mark.parametrize(
    ("settings", "param"),
    [
        ({"instructions": "Be brief."}, "session.instructions"),
        ({"tools": []}, "session.tools"),
        ({"audio": {"output": {"voice": "river"}}}, "session.audio.output"),
    ],
)
async def test_settings_of_answers_are_refused(settings: dict[str, Any], param: str) -> None:
    async with talking() as talk:
        await talk.update(**{"type": "transcription", **settings})
        assert talk.error["param"] == param


async def test_a_response_is_refused() -> None:
    async with talking() as talk:
        await become_transcription(talk)
        (refused,) = await talk.send("response.create")
        assert kinds([refused]) == ["error"]
        assert talk.error["param"] == "type"


async def test_its_settings_are_flat_in_the_beta_version() -> None:
    async with talking(BETA) as talk:
        await talk.update(type="transcription", input_audio_format="g711_ulaw")
        session = talk.of("session.updated")[-1]["session"]
        assert session["object"] == "realtime.transcription_session"
        assert session["input_audio_format"] == "g711_ulaw"
        assert "voice" not in session
