"""Answers held to calls of functions and to schemas, by a thinker with random weights.

What comes out right is the grammar's doing. With the official client, streamed and whole.
"""

import asyncio
import json
from typing import Any

import jsonschema
import openai
import pytest

from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from tests.server.running import RunningServer
from tests.server.test_realtime import conversation, until
from tests.testing.golden import TINY

PLACE = {
    "type": "object",
    "properties": {
        "at": {"$ref": "#/$defs/place"},
        "times": {"type": "integer", "minimum": 1, "maximum": 20},
        "parts": {"type": "array", "items": {"enum": ["wheel", "roof"]}, "maxItems": 2},
        "note": {"type": "string", "maxLength": 8},
    },
    "required": ["at", "times", "parts", "note"],
    "additionalProperties": False,
    "$defs": {"place": {"enum": ["mill", "river"]}},
}
WAIT = {
    "type": "object",
    "properties": {"quietly": {"type": "boolean"}},
    "required": ["quietly"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {"look": PLACE, "wait": WAIT}
HELLO: list[Any] = [{"role": "user", "content": "What is at the mill?"}]
SEEDS = range(4)
TOKENIZER = ThinkerTokenizer(TINY)
CALL = str(TOKENIZER.token_id("<tool_call>"))
END = str(TOKENIZER.token_id("<|role_end|>"))
(THOUGHT,) = map(str, TOKENIZER.encode_text("<"))


def tools(strict: bool = False) -> list[Any]:
    specs = ({"name": name, "parameters": schema} for name, schema in SCHEMAS.items())
    return [{"type": "function", "function": {**spec, "strict": strict}} for spec in specs]


def named(name: str) -> Any:
    return {"type": "function", "function": {"name": name}}


@pytest.fixture
def client(server: RunningServer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=server.api, api_key="none", max_retries=0)


async def ask(client: openai.AsyncOpenAI, stream: bool, **fields: Any) -> Any:
    """The one choice of an answer, drawn at random."""
    fields = {"max_tokens": 400, "temperature": 1.0, **fields}
    if not stream:
        answer = await client.chat.completions.create(model="ming-omni", messages=HELLO, **fields)
        return answer.choices[0]
    async with client.chat.completions.stream(
        model="ming-omni", messages=HELLO, **fields
    ) as events:
        return (await events.get_final_completion()).choices[0]


async def ask_often(client: openai.AsyncOpenAI, stream: bool, **fields: Any) -> list[Any]:
    """The same with several seeds."""
    asked = (ask(client, stream, seed=seed, **fields) for seed in SEEDS)
    return await asyncio.gather(*asked)


def check_call(call: Any) -> str:
    """That it is one, of its schema; returns the function's name."""
    assert call.type == "function"
    assert call.id.startswith("call_")
    jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
    name: str = call.function.name
    return name


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", "look", "wait"])
async def test_a_forced_call_is_one_every_time(
    client: openai.AsyncOpenAI, choice: str, stream: bool
) -> None:
    asked = choice if choice == "required" else named(choice)
    made = await ask_often(
        client, stream, tools=tools(strict=stream), tool_choice=asked, parallel_tool_calls=False
    )
    for answer in made:
        assert answer.finish_reason == "tool_calls"
        assert not answer.message.content
        (call,) = answer.message.tool_calls
        assert check_call(call) in (SCHEMAS if choice == "required" else (choice,))
    if choice == "look":
        # They were drawn, not written down somewhere.
        assert len({answer.message.tool_calls[0].function.arguments for answer in made}) > 1


async def test_forced_calls_in_parallel_are_all_right(client: openai.AsyncOpenAI) -> None:
    made = await ask_often(client, False, tools=tools(), tool_choice="required")
    for answer in made:
        assert [check_call(call) for call in answer.message.tool_calls]


async def test_only_the_tools_allowed_are_called(client: openai.AsyncOpenAI) -> None:
    allowed = {"mode": "required", "tools": [named("wait")]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    for answer in await ask_often(client, False, tools=tools(), tool_choice=choice):
        assert {check_call(call) for call in answer.message.tool_calls} == {"wait"}


async def test_a_strict_function_is_called_right_once_a_call_begins(
    client: openai.AsyncOpenAI,
) -> None:
    begins = {"logit_bias": {CALL: 100}, "parallel_tool_calls": False}
    for answer in await ask_often(client, False, tools=tools(strict=True), **begins):
        assert [check_call(call) for call in answer.message.tool_calls]
    # The same model that is not held to anything.
    for answer in await ask_often(client, False, tools=tools(), max_tokens=20, **begins):
        assert answer.message.tool_calls is None


async def test_strict_functions_leave_text_free(client: openai.AsyncOpenAI) -> None:
    # The model with random weights may also end its answer before the first word.
    banned = {CALL: -100, END: -100}
    made = await ask_often(
        client, False, tools=tools(strict=True), logit_bias=banned, max_tokens=12
    )
    assert all(answer.message.content for answer in made)
    assert all(answer.message.tool_calls is None for answer in made)


@pytest.mark.parametrize("bias", [100, -100])
async def test_a_schema_with_tools_is_kept_to_or_a_function_is_called(
    client: openai.AsyncOpenAI, bias: int
) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "wait", "schema": WAIT}}
    made = await ask_often(
        client,
        False,
        tools=tools(strict=True),
        response_format=form,
        logit_bias={CALL: bias},
        parallel_tool_calls=False,
    )
    for answer in made:
        if bias > 0:
            assert [check_call(call) for call in answer.message.tool_calls]
        else:
            jsonschema.validate(json.loads(answer.message.content), WAIT)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("calls", [False, True])
async def test_with_thinking_on_the_answer_is_held_and_the_thought_is_not(
    client: openai.AsyncOpenAI, calls: bool, stream: bool
) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "wait", "schema": WAIT}}
    held: Any = {"tools": tools(strict=stream), "tool_choice": named("look")} if calls else {}
    held |= {"reasoning_effort": "high", "response_format": form}
    for answer in await ask_often(client, stream, **held, logit_bias={THOUGHT: -100}):
        if calls:
            assert [check_call(call) for call in answer.message.tool_calls] == ["look"]
        else:
            jsonschema.validate(json.loads(answer.message.content), WAIT)
    thought = await ask(client, False, **held, logit_bias={THOUGHT: 100}, max_tokens=20)
    assert thought.message.reasoning_content
    assert not thought.message.content


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tools"),
        ({"reasoning_effort": "high"}, "response_format"),
    ],
)
async def test_a_schema_that_is_none_is_refused_by_its_field(
    client: openai.AsyncOpenAI, fields: Any, param: str
) -> None:
    broken = {"type": "object", "properties": {"a": {"type": "no such type"}}}
    if param == "tools":
        fields = {**fields, "tools": [{**named("look")}]}
        fields["tools"][0]["function"] = {"name": "look", "parameters": broken}
    else:
        form = {"name": "look", "schema": broken}
        fields = {**fields, "response_format": {"type": "json_schema", "json_schema": form}}
    with pytest.raises(openai.BadRequestError) as refused:
        await ask(client, False, **fields)
    assert refused.value.param == param


async def test_a_forced_call_in_a_spoken_answer_says_nothing(client: openai.AsyncOpenAI) -> None:
    answer = await ask(
        client,
        False,
        tools=tools(),
        tool_choice=named("look"),
        modalities=["text", "audio"],
        audio={"voice": "DB30", "format": "wav"},
    )
    assert [check_call(call) for call in answer.message.tool_calls] == ["look"]
    assert answer.message.audio.transcript == ""


async def test_a_realtime_response_calls_what_it_must(server: RunningServer) -> None:
    functions = [
        {"type": "function", "name": name, "parameters": schema} for name, schema in SCHEMAS.items()
    ]
    forced: list[Any] = ["required", {"type": "function", "name": "look"}]
    async with conversation(server) as connection:
        for choice in forced:
            session = {"type": "realtime", "tools": functions, "tool_choice": choice}
            await connection.session.update(session={**session, "parallel_tool_calls": False})
            await connection.response.create()
            events = await until(connection, "response.done")
            assert not [e for e in events if e.type == "response.output_audio.delta"]
            (call,) = events[-1].response.output
            jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])
            assert call.name in (SCHEMAS if choice == "required" else ("look",))
