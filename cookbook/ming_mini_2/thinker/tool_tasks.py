"""Tool calls in the checkpoint's format, and answers from what a function returned."""

import json
from collections.abc import Sequence
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.dialogs import ChatMessage
from cookbook.ming_mini.thinker.items import Check, Item
from cookbook.ming_mini_2.thinker.dialog import (
    DialogItem,
    as_dialog,
    call_of,
    text_message,
)
from cookbook.ming_mini_2.thinker.dialogs import SYSTEM_LINES, Maker, made_up_name
from cookbook.ming_mini_2.thinker.functions import FUNCTIONS, RESULTS, Call, Function, draw_call
from sglang_omni.protocol.tools import Tool, ToolCall, ToolResult

MAX_TOOLS = 3
THINKING_SHARE, SYSTEM_SHARE = 0.1, 0.2
TYPES = {"string": "a word", "integer": "a number"}


def tool_call(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Draw a request that one of the offered functions fulfils."""
    call = draw_call(rng, rng.choice(FUNCTIONS))
    return _calling("tool_call", call, rng, _request(call, rng))


def unusual_call(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Draw a request for a function with made-up names, so that names and values are copied."""
    call = _unusual(rng, lexicon)
    told = " and ".join(f"{name} {value}" for name, value in call.arguments.items())
    ask = rng.choice(
        (
            f"Call {call.tool.name} with {told}.",
            f"Use {call.tool.name}: {told}",
            f"Run {call.tool.name} with {told}.",
            f"Please use the function {call.tool.name} with {told}.",
        )
    )
    return _calling("tool_call", call, rng, ask)


def _unusual(rng: Random, lexicon: Lexicon) -> Call:
    name = "_".join((rng.choice(lexicon.verbs), rng.choice(lexicon.nouns)))
    if rng.random() < 0.3:
        name = made_up_name(rng).lower()
    names = rng.sample(lexicon.nouns, rng.randint(1, min(2, len(lexicon.nouns))))
    kinds = {one: rng.choice(("string", "integer")) for one in names}
    parameters = {
        "type": "object",
        "properties": {one: {"type": kind} for one, kind in kinds.items()},
        "required": names,
    }
    values = {one: _plain_value(kind, rng, lexicon) for one, kind in kinds.items()}
    function = Function((name,), f"{name.replace('_', ' ').capitalize()}.", {}, (), {}, "")
    return Call(function, Tool(name, function.description, parameters), {}, values)


def _plain_value(kind: str, rng: Random, lexicon: Lexicon) -> str | int:
    if kind == "integer":
        return rng.randrange(10 ** rng.randint(1, 4))
    return made_up_name(rng) if rng.random() < 0.5 else rng.choice(lexicon.nouns)


def parallel_calls(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Draw a request that needs one function twice: the weather in two cities."""
    function = rng.choice([one for one in FUNCTIONS if tuple(one.slots.values()) == ("city",)])
    call = draw_call(rng, function)
    name = next(iter(call.arguments))
    other = draw_call(rng, function).values["city"]
    if other == call.values["city"]:
        return parallel_calls(rng, lexicon)
    what = "weather" if "weather" in function.names[0] else "time"
    ask = rng.choice(
        (
            f"What is the {what} in {call.values['city']} and in {other}?",
            f"Tell me the {what} in {call.values['city']} and {other}.",
        )
    )
    made = tuple(call_of(call.tool.name, {name: city}) for city in (call.values["city"], other))
    return _with_frame("tool_call", call.tool, made, rng, ask)


def _request(call: Call, rng: Random) -> str:
    text = rng.choice(call.function.asked).format(**call.values)
    # Only an imperative can follow "please".
    polite = text[-1] == "." and not text.startswith(("I ", "It "))
    before = rng.choice(("", "", "", "Please ", "Please, ")) if polite else ""
    return before + (text[0].lower() + text[1:] if before else text)


def _calling(task: str, call: Call, rng: Random, ask: str) -> DialogItem:
    made = (call_of(call.tool.name, call.arguments),)
    return _with_frame(task, call.tool, made, rng, ask)


def _with_frame(
    task: str, tool: Tool, calls: tuple[ToolCall, ...], rng: Random, ask: str
) -> DialogItem:
    thinking = rng.random() < THINKING_SHARE
    thought = f"I call {' and '.join(dict.fromkeys(one.name for one in calls))}."
    return DialogItem(
        task,
        ask,
        "",
        before=_system(rng),
        tools=offered(rng, tool),
        thinking=thinking,
        thought=thought if thinking else "",
        calls=calls,
    )


def _system(rng: Random) -> tuple[ChatMessage, ...]:
    line = rng.choice((*SYSTEM_LINES, "Use the functions.", "You can call functions."))
    return (text_message("system", line),) if rng.random() < SYSTEM_SHARE else ()


def offered(rng: Random, *wanted: Tool) -> tuple[Tool, ...]:
    """Return tools in any order: the `wanted` ones, and perhaps some with other names."""
    tools = list(wanted)
    for function in rng.sample(FUNCTIONS, rng.choice((0, 0, 1, MAX_TOOLS - 1))):
        # Another function that would do as well leaves the right answer open.
        if not any(tool.name in function.names for tool in wanted):
            tools.append(draw_call(rng, function).tool)
    rng.shuffle(tools)
    return tuple(tools)


def tool_result(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Draw the result of a call, to be told to the user."""
    call = draw_call(rng, rng.choice(FUNCTIONS))
    result = {key: RESULTS[kind](rng) for key, kind in call.function.result.items()}
    kinds = {kind: result[key] for key, kind in call.function.result.items()}
    answer = call.function.told.format(**call.values, **kinds)
    asked = text_message("user", _request(call, rng))
    made = ChatMessage("assistant", (call_of(call.tool.name, call.arguments),))
    # What the function found must be told; where it only did something, to what.
    told = [value for value in kinds.values() if value != "done"] or list(call.values.values())
    check: Check = "number" if isinstance(told[0], int) else "contains"
    return DialogItem(
        "tool_result",
        "",
        answer,
        check,
        tuple(str(value).lower() for value in told if str(value) in answer),
        before=(*_system(rng), asked, made),
        tools=offered(rng, call.tool) if rng.random() < 0.8 else (),
        result=ToolResult(_shown(result, kinds, call, rng)),
    )


def _shown(result: dict[str, object], kinds: dict[str, object], call: Call, rng: Random) -> str:
    """Return a result as functions return it: JSON, with or without the arguments, or text."""
    draw = rng.random()
    if draw < 0.5:
        return json.dumps(result, ensure_ascii=False)
    if draw < 0.75:
        return json.dumps({**call.arguments, **result}, ensure_ascii=False)
    return ", ".join(str(value) for value in kinds.values())


def answer_beside_tools(makers: Sequence[Maker]) -> Maker:
    """Return a task: functions are offered, but a question of `makers` needs none of them."""

    def draw(rng: Random, lexicon: Lexicon) -> Item:
        item = rng.choice(makers)(rng, lexicon)
        return as_dialog(item, task="no_call", tools=offered(rng, _any_tool(rng)))

    return draw


def _any_tool(rng: Random) -> Tool:
    return draw_call(rng, rng.choice(FUNCTIONS)).tool
