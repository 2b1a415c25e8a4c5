"""Settings that a session ignores are told, and the names of OpenAI's models and voices work."""

from typing import Any

import pytest

from sglang_omni.entrypoints.realtime.field_rules import nest_flat_settings
from tests.entrypoints.realtime.harness import talking


@pytest.mark.parametrize(
    ("session", "ignored"),
    [
        ({"tracing": "auto"}, ["session.tracing"]),
        ({"reasoning": {"effort": "low"}}, ["session.reasoning"]),
        ({"include": ["logprobs"]}, ["session.include"]),
        ({"truncation": {"type": "retention_ratio"}}, ["session.truncation.retention_ratio"]),
        (
            {"audio": {"input": {"noise_reduction": {"type": "near_field"}}}},
            ["session.audio.input.noise_reduction"],
        ),
        (
            {"audio": {"input": {"transcription": {"languages": ["en"], "delay": "low"}}}},
            ["session.audio.input.transcription.delay"],
        ),
        ({"audio": {"input": {"transcription": {"keywords": []}}}}, None),
        ({"id": "sess_1", "metadata": {"a": "b"}}, ["session.id", "session.metadata"]),
        ({"tracing": None, "instructions": "Be brief."}, None),
    ],
)
async def test_a_setting_without_effect_is_told(
    session: dict[str, Any], ignored: list[str] | None
) -> None:
    async with talking() as talk:
        await talk.update(**session)
        assert talk.of("session.updated")[-1].get("ignored_fields") == ignored


async def test_a_null_beside_an_ignored_setting_still_turns_a_setting_off() -> None:
    async with talking() as talk:
        settings = {"noise_reduction": {"type": "far_field"}, "turn_detection": None}
        await talk.update(audio={"input": settings})
        session = talk.of("session.updated")[-1]["session"]
        assert session["audio"]["input"]["turn_detection"] is None


async def test_names_of_openai_are_known() -> None:
    async with talking() as talk:
        await talk.update(model="gpt-realtime", audio={"output": {"voice": "marin"}})
        session = talk.of("session.updated")[-1]["session"]
        assert session["model"] == "gpt-realtime"
        assert session["audio"]["output"]["voice"] == "marin"
        await talk.write("go on")
        await talk.send("response.create", response={"reasoning": {"effort": "low"}})
        assert talk.backend.requests[0].voice.name in talk.backend.voices


async def test_settings_of_the_beta_version_are_understood() -> None:
    async with talking() as talk:
        await talk.update(voice="river", modalities=["text", "audio"], temperature=0.8)
        session = talk.of("session.updated")[-1]["session"]
        assert session["audio"]["output"]["voice"] == "river"
        assert session["output_modalities"] == ["audio"]


def test_settings_of_the_current_version_stay_as_they_are() -> None:
    settings = {"audio": {"output": {"voice": "river"}}, "voice": "prompt"}
    assert nest_flat_settings(settings) is settings


async def test_a_typing_error_is_told_the_nearest_setting() -> None:
    async with talking() as talk:
        await talk.update(instruction="Be brief.")
        assert talk.error["message"] == (
            "session.instruction: unknown field; did you mean 'instructions'?"
        )


async def test_strict_fields_refuse_a_setting_without_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking() as talk:
        monkeypatch.setattr(type(talk.backend), "strict_fields", True)
        await talk.update(tracing="auto")
        assert talk.error["param"] == "session.tracing"
        assert talk.error["code"] == "unsupported_parameter"
        assert talk.of("session.updated") == []
