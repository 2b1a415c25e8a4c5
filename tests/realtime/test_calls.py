"""Functions that the model may call."""

import json

from sglang_omni.models.ming.tools import Tool, ToolCall, ToolResult
from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
    Usage,
)
from tests.api.fake import playing, tone
from tests.realtime.harness import kinds, talking

LOOK = {
    "type": "function",
    "name": "look",
    "description": "Looks at a place.",
    "parameters": {"type": "object"},
}
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


async def test_tools_may_be_withheld_but_not_forced() -> None:
    async with talking() as talk:
        await talk.update(tools=[LOOK], tool_choice="none")
        await talk.send("response.create")
        assert talk.backend.requests[0].tools == ()
        for choice in ("required", {"type": "function", "name": "look"}):
            await talk.update(tool_choice=choice)
            assert talk.error["param"] == "session.tool_choice"
        await talk.send("response.create", response={"tools": [], "tool_choice": "auto"})
        assert talk.backend.requests[1].tools == ()
