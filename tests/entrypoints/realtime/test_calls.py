"""Functions that the model may call."""

import json

import pytest

from sglang_omni.engines.thinker.contract import FinishReason
from sglang_omni.entrypoints.realtime.items import JSON
from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    Started,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
    Usage,
)
from sglang_omni.protocol.errors import EngineUnavailable
from sglang_omni.protocol.tools import (
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolChoice,
    ToolResult,
)
from tests.entrypoints.http.fake import FakeBackend, hanging, playing, tone
from tests.entrypoints.realtime.harness import kinds, talking

LOOK: JSON = {
    "type": "function",
    "name": "look",
    "description": "Looks at a place.",
    "parameters": {"type": "object"},
}
NAMED: JSON = {"type": "function", "name": "look"}
CALL = ToolCall("look", '{"at": "mill"}')
DONE = Finished("stop", Usage())
CALLED = [
    "response.output_item.added",
    "conversation.item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "conversation.item.done",
]


async def test_a_function_is_called_and_its_result_is_answered() -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK])
        talk.backend.script = playing(ToolCalled(CALL), DONE)
        await talk.write("What is there?")
        events = await talk.send("response.create")
        assert kinds(events) == [
            "response.created",
            *CALLED,
            "response.done",
            "rate_limits.updated",
        ]
        tools = talk.backend.requests[0].tools
        assert tools == (Tool("look", "Looks at a place.", {"type": "object"}),)
        item = talk.of("response.done")[0]["response"]["output"][0]
        assert (item["type"], item["name"], item["status"]) == (
            "function_call",
            "look",
            "completed",
        )
        assert json.loads(item["arguments"]) == {"at": "mill"}
        result = {"type": "function_call_output", "call_id": item["call_id"], "output": "a wheel"}
        await talk.send("conversation.item.create", item=result)
        await talk.send("response.create")
        messages = talk.backend.requests[1].messages
        assert [m.role for m in messages] == ["system", "user", "assistant", "tool"]
        assert messages[2].content == (CALL,)
        assert messages[3].content == (ToolResult("a wheel"),)


async def test_a_call_beside_speech_is_an_item_of_its_own() -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK])
        spoken = (TextDelta("Wait. "), TranscriptDelta("Wait. "), AudioDelta(tone()))
        talk.backend.script = playing(*spoken, ToolCalled(CALL), DONE)
        await talk.write("What is there?")
        events = await talk.send("response.create")
        call = talk.of("response.function_call_arguments.done")[0]
        assert (call["output_index"], call["name"]) == (1, "look")
        output = talk.of("response.done")[0]["response"]["output"]
        assert [item["type"] for item in output] == ["message", "function_call"]
        assert kinds(events)[-3:] == [
            "conversation.item.done",
            "response.done",
            "rate_limits.updated",
        ]


STREAMED = (ToolCallStart("look"), ToolCallDelta('{"at": '), ToolCallDelta('"mill"}'))


async def test_arguments_are_sent_as_they_come() -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK], tool_choice="required")
        other = ToolCalled(ToolCall("look", "{}"))
        talk.backend.script = playing(*STREAMED, ToolCalled(CALL), other, DONE)
        await talk.write("What is there?")
        events = await talk.send("response.create")
        delta = "response.function_call_arguments.delta"
        types = [event["type"] for event in events]
        assert types[1:-2] == [*CALLED[:2], delta, *CALLED[2:], *CALLED]
        assert [event["delta"] for event in talk.of(delta)] == ['{"at": ', '"mill"}', "{}"]
        done, _ = talk.of("response.function_call_arguments.done")
        assert (done["name"], done["arguments"]) == ("look", CALL.arguments)
        ids = {(e["item_id"], e["call_id"], e["output_index"]) for e in [*talk.of(delta)[:2], done]}
        assert len(ids) == 1
        items = talk.of("response.done")[0]["response"]["output"]
        assert [item["arguments"] for item in items] == [CALL.arguments, "{}"]


@pytest.mark.parametrize("cancelled", [False, True], ids=["length", "cancelled"])
async def test_a_call_that_is_cut_is_an_incomplete_item_that_no_prompt_has(
    cancelled: bool,
) -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK], tool_choice="required")
        cut = Finished("length", Usage(), invalid_calls=1)
        begun = STREAMED[:2]
        talk.backend.script = hanging(*begun) if cancelled else playing(*begun, cut)
        await talk.write("What is there?")
        await talk.send("response.create")
        if cancelled:
            await talk.send("response.cancel")
        response = talk.of("response.done")[0]["response"]
        assert response["status"] == ("cancelled" if cancelled else "incomplete")
        (item,) = response["output"]
        assert (item["status"], item["arguments"]) == ("incomplete", '{"at": ')
        assert talk.of("response.function_call_arguments.done")[0]["arguments"] == '{"at": '
        assert talk.of("conversation.item.done")[-1]["item"] == item
        talk.backend.script = playing(DONE)
        await talk.send("response.create")
        messages = talk.backend.requests[-1].messages
        assert [message.role for message in messages] == ["system", "user"]


async def test_tools_may_be_withheld_and_forced() -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK], tool_choice="none")
        await talk.send("response.create")
        assert talk.backend.requests[0].tools == ()
        for choice, calling in (
            ("required", ToolChoice(forced=True)),
            (NAMED, ToolChoice(forced=True, only=("look",), parallel=False)),
        ):
            await talk.update(tool_choice=choice)
            assert talk.of("session.updated")[-1]["session"]["tool_choice"] == choice
            await talk.send("response.create")
            assert talk.backend.requests[-1].tool_choice == calling
        await talk.send("response.create", response={"tools": [], "tool_choice": "auto"})
        assert (talk.backend.requests[-1].tools, talk.backend.requests[-1].tool_choice) == (
            (),
            ToolChoice(),
        )


OTHER: JSON = {**NAMED, "name": "listen"}


@pytest.mark.parametrize(
    "session",
    [
        {"tool_choice": "required"},
        {"tool_choice": NAMED},
        {"tools": [LOOK], "tool_choice": OTHER},
    ],
)
async def test_a_call_of_nothing_is_refused(session: JSON) -> None:
    async with talking() as talk:
        await talk.update(**session)
        assert talk.error["param"] == "session.tool_choice"
        assert "session.updated" not in kinds(talk.events)


async def test_a_response_that_withholds_what_must_be_called_is_refused() -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK], tool_choice="required")
        await talk.send("response.create", response={"tools": []})
        assert talk.error["param"] == "response.tool_choice"
        assert talk.backend.requests == []


async def test_strict_functions_and_calls_one_at_a_time_are_asked_for() -> None:
    async with talking() as talk:
        await talk.update(tools=[{**LOOK, "strict": True}], parallel_tool_calls=False)
        assert talk.of("session.updated")[-1]["session"]["parallel_tool_calls"] is False
        await talk.send("response.create")
        asked = talk.backend.requests[-1]
        assert asked.tools[0].strict
        assert asked.tool_choice == ToolChoice(parallel=False)
        await talk.send("response.create", response={"parallel_tool_calls": True})
        assert talk.backend.requests[-1].tool_choice == ToolChoice()


async def test_a_thinker_without_grammars_of_calls_is_held_to_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking() as talk:
        monkeypatch.setattr(type(talk.backend), "supports_grammar", False)
        await talk.update(tools=[LOOK], tool_choice="required")
        assert talk.error["param"] == "session.tool_choice"
        assert "llguidance" in talk.error["message"]


async def test_settings_without_forced_calls_do_not_ask_what_the_thinker_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def starting(backend: FakeBackend) -> bool:
        raise EngineUnavailable("the thinker is starting")

    async with talking() as talk:
        monkeypatch.setattr(type(talk.backend), "supports_grammar", property(starting))
        await talk.update(tools=[LOOK])
        assert talk.of("session.updated")
        await talk.update(tool_choice="required")
        assert "starting" in talk.error["message"]


@pytest.mark.parametrize(
    ("ended", "reason"), [("length", "max_output_tokens"), ("stop", "invalid_tool_call")]
)
async def test_a_call_that_is_none_leaves_the_response_incomplete(
    ended: FinishReason, reason: str
) -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK])
        talk.backend.script = playing(Started(), Finished(ended, Usage(), invalid_calls=1))
        await talk.write("What is there?")
        await talk.send("response.create")
        response = talk.of("response.done")[0]["response"]
        assert (response["status"], response["output"]) == ("incomplete", [])
        assert response["status_details"]["reason"] == reason
