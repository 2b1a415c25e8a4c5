"""Ask fifty prompts that a newcomer would try, each judged by a stated rule.

    python -m cookbook.ming_mini_2.thinker.evaluation.first_prompts --url http://127.0.0.1:8000

`first_prompts.json` has a prompt a line, with what goes with it and the rule of its answer:

    before, system      earlier messages, [role, text] each, and a system message
    picture             shapes and colours, or the text of a sign, that are drawn
    tools, choice       functions and `tool_choice`; `result` is what the call then returns
    schema              JSON schema of the answer
    speak               the prompt is spoken by `/v1/audio/speech` and then written down
    any, none           of these strings one, or none, occurs in the answer, in any case
    number              the last number of the answer
    regex               a pattern that the answer has, in any case
    min_words           the fewest words of the answer
    json                the value of the answer
    call                name and arguments of the call

All rules that a prompt has must hold, and the answer must end by itself.
"""

import argparse
import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx

from cookbook.ming_mini.thinker.checks import last_number
from cookbook.ming_mini.thinker.picture_tasks import lettered_scene
from cookbook.ming_mini.thinker.scenes import DrawnShape, Scene
from cookbook.ming_mini_2.thinker.evaluation.ask import (
    MAX_TOKENS,
    Json,
    Reply,
    ask_chat,
    picture_part,
    schema_format,
    transcribe,
)
from cookbook.ming_mini_2.thinker.excluded import FIRST_PROMPTS
from measurement.environment import fingerprint

Prompt = Mapping[str, Any]
MUST = 45
RULES = ("any", "none", "number", "regex", "min_words", "json", "call")
SPEECH = "/v1/audio/speech"


@dataclass(frozen=True)
class Judged:
    """A prompt with its replies in order, and the rules that they break."""

    prompt: str
    replies: tuple[Reply, ...]
    broken: tuple[str, ...]


def read_prompts(path: Path = FIRST_PROMPTS) -> list[Prompt]:
    """Read the prompts. Raises `ValueError` for one without a rule."""
    prompts: list[Prompt] = json.loads(path.read_text("utf-8"))
    for prompt in prompts:
        if not prompt.keys() & set(RULES):
            raise ValueError(f"{prompt['prompt']!r} has no rule")
    return prompts


def broken_rules(prompt: Prompt, replies: Sequence[Reply]) -> tuple[str, ...]:
    """Return the names of the rules that the replies break; "end" for an answer that was cut."""
    text = replies[-1].text
    calls = [call for reply in replies for call in reply.calls]
    return tuple(
        rule
        for rule in ("end", *RULES)
        if (rule == "end" or rule in prompt) and not _holds(rule, prompt, text, calls, replies)
    )


def _holds(
    rule: str, prompt: Prompt, text: str, calls: Sequence[tuple[str, Any]], replies: Sequence[Reply]
) -> bool:
    said, wanted = text.lower(), prompt.get(rule)
    match rule:
        case "end":
            return all(reply.finish_reason != "length" for reply in replies)
        case "any":
            return any(one.lower() in said for one in wanted or ())
        case "none":
            return not any(one.lower() in said for one in wanted or ())
        case "number":
            return last_number(text) == wanted
        case "regex":
            return re.search(str(wanted), said) is not None
        case "min_words":
            return len(text.split()) >= int(wanted or 0)
        case "json":
            return _parse(text) == wanted
    return calls == [(prompt["call"]["name"], prompt["call"]["arguments"])]


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def draw_picture(spec: Mapping[str, Any]) -> Scene:
    """Draw the picture that a prompt names: shapes in a row, or the text of a sign."""
    if "text" in spec:
        return lettered_scene(spec["text"], Random(spec["text"]))
    cells = {1: ((1, 1),), 3: ((0, 0), (1, 1), (2, 2))}[len(spec["shapes"])]
    shapes = tuple(
        DrawnShape(shape, colour, cell, 76, (0, 0))
        for (shape, colour), cell in zip(spec["shapes"], cells, strict=True)
    )
    return Scene((256, 256), "white", shapes)


def prompt_body(prompt: Prompt) -> Json:
    """Return the body of the chat that asks a prompt."""
    messages: list[Json] = []
    if "system" in prompt:
        messages.append({"role": "system", "content": prompt["system"]})
    messages += [{"role": role, "content": text} for role, text in prompt.get("before", ())]
    content: list[Json] = [{"type": "text", "text": prompt["prompt"]}]
    if "picture" in prompt:
        content.insert(0, picture_part(draw_picture(prompt["picture"]).draw()))
    messages.append({"role": "user", "content": content})
    body: Json = {"messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
    if "tools" in prompt:
        body |= {"tools": prompt["tools"], "tool_choice": prompt.get("choice", "auto")}
    if "schema" in prompt:
        body["response_format"] = schema_format(prompt["schema"])
    return body


async def ask(client: httpx.AsyncClient, model: str, prompt: Prompt) -> Judged:
    """Ask one prompt and judge it. Raises `httpx.HTTPStatusError` if the server rejects it."""
    if prompt.get("speak"):
        speech = {"model": model, "input": prompt["prompt"], "response_format": "wav", "seed": 1}
        wav = (await client.post(SPEECH, json=speech)).raise_for_status().content
        replies = [await transcribe(client, model, wav)]
    else:
        body = prompt_body(prompt) | {"model": model}
        replies = [await ask_chat(client, body)]
        if "result" in prompt and replies[0].calls:
            body = _with_result(body, replies[0], prompt["result"])
            replies.append(await ask_chat(client, body))
    return Judged(prompt["prompt"], tuple(replies), broken_rules(prompt, replies))


def _with_result(body: Json, reply: Reply, result: str) -> Json:
    name, arguments = reply.calls[0]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    more = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]
    return body | {"messages": [*body["messages"], *more]}


async def ask_all(url: str, prompts: Sequence[Prompt]) -> list[Judged]:
    """Ask prompts one after the other."""
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as client:
        models = (await client.get("/v1/models")).raise_for_status().json()
        model = models["data"][0]["id"]
        return [await ask(client, model, prompt) for prompt in prompts]


def main() -> int:
    """Ask, print what is not answered well, and return 1 below the number that must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--at-least", type=int, default=MUST, help="answers that must be good")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    judged = asyncio.run(ask_all(args.url, read_prompts()))
    for one in judged:
        if one.broken:
            print(f"{one.prompt!r}: {one.replies[-1]}, breaks {', '.join(one.broken)}")
    right = sum(not one.broken for one in judged)
    print(f"{right} of {len(judged)} answered well, {args.at_least} must be")
    if args.out:
        rows = [{"prompt": one.prompt, "broken": one.broken} for one in judged]
        report = {"right": right, "prompts": rows, "environment": fingerprint()}
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if right >= args.at_least else 1


if __name__ == "__main__":
    raise SystemExit(main())
