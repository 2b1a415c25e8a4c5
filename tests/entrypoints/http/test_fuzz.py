"""No body and no use of the documented interface makes the server say 500."""

import copy
import json
import random
from typing import Any

import httpx
import pytest

from tests.entrypoints.http.fake import Served

schemathesis = pytest.importorskip("schemathesis")
hypothesis = pytest.importorskip("hypothesis")

PATHS = (
    *("/v1/chat/completions", "/v1/audio/speech"),
    *("/v1/completions", "/v1/tokenize", "/v1/detokenize"),
)
CHAT: dict[str, Any] = {
    "model": "org/ming",
    "messages": [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                {"type": "video_url", "video_url": {"frames": ["data:,", "data:,"]}},
            ],
        },
    ],
    "modalities": ["text", "audio"],
    "audio": {"voice": {"id": "river"}, "format": "wav", "sample_rate": 8000},
    "stream_options": {"include_usage": True},
    "stream": True,
    "stop": ["a", "b"],
    "seed": 3,
    "timeout": 5.0,
}
SPEECH: dict[str, Any] = {"model": "org/ming", "input": "hello", "voice": "river", "seed": 1}
COMPLETION: dict[str, Any] = {
    "model": "org/ming",
    "prompt": ["hello", [104, 105]],
    "echo": True,
    "logprobs": 2,
    "max_tokens": 4,
    "n": 2,
    "best_of": 2,
    "logit_bias": {"7": 1},
    "stop": ["a"],
    "stream": True,
    "stream_options": {"include_usage": True},
}
TOKENIZE: dict[str, Any] = {
    "model": "org/ming",
    "messages": [*CHAT["messages"][:1], {"role": "user", "content": "hello"}],
    "tools": [{"type": "function", "function": {"name": "look"}}],
    "tool_choice": "auto",
    "return_token_strs": True,
}
DETOKENIZE: dict[str, Any] = {"model": "org/ming", "tokens": [104, 105]}
BODIES = (CHAT, SPEECH, COMPLETION, TOKENIZE, DETOKENIZE)
# What breaks parsers: depth, size, numbers nobody means, text that is none.
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    -(2**63) - 1,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202e\U0001f600",
    "a" * 5000,
    [],
    {},
    [[]],
    {"": ""},
    {"url": {"url": "x"}},
    "data:image/png;base64,!!!",
    "http://[::1",
    "file:///etc/passwd",
]
RAW = [
    b"",
    b"\x00",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"model":"org/ming","model":1}',
    b"\xff\xfe{}",
    b'"\\ud800"',
    b"1e999999",
    b"-0",
    b"9" * 10_000,
    b'{"messages":' + b"[" * 2000 + b"]" * 2000 + b"}",
]


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a body, its root left out."""
    found = [path] if path else []
    if isinstance(node, dict):
        return found + [one for key in node for one in places(node[key], (*path, key))]
    if isinstance(node, list):
        return found + [one for i in range(len(node)) for one in places(node[i], (*path, i))]
    return found


def odd(chance: random.Random) -> Any:
    """An odd value, a copy, since the next mutation may change it."""
    return copy.deepcopy(chance.choice(ODD))


def mutated(body: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A body with an odd value, a value moved, one removed, or one too many, a few times."""
    changed: dict[str, Any] = json.loads(json.dumps(body))
    for _ in range(chance.randint(1, 3)):
        path = chance.choice(places(changed) or [("model",)])
        holder: Any = changed
        for step in path[:-1]:
            holder = holder[step]
        match chance.randrange(4):
            case 0:
                del holder[path[-1]]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(["", "x", "stream", "\ud800"])] = odd(chance)
            case _:
                holder[path[-1]] = odd(chance)
        if not changed:
            return changed
    return changed


def send(http: httpx.Client, path: str, content: bytes) -> None:
    reply = http.post(path, content=content, headers={"Content-Type": "application/json"})
    assert reply.status_code < 500, (reply.text, content[:300])
    if reply.status_code != 200:
        assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("content", RAW, ids=range(len(RAW)))
def test_bodies_that_are_no_requests_are_refused(
    http: httpx.Client, path: str, content: bytes
) -> None:
    send(http, path, content)


@pytest.mark.parametrize(("path", "body"), list(zip(PATHS, BODIES, strict=True)))
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 40))]
)
def test_mutated_requests_are_served_or_refused(
    http: httpx.Client, path: str, body: dict[str, Any], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        send(http, path, json.dumps(mutated(body, chance)).encode())


@pytest.mark.parametrize("examples", [6, pytest.param(200, marks=pytest.mark.soak)])
def test_the_documented_interface_holds_no_500(drawing_server: Served, examples: int) -> None:
    schema = schemathesis.openapi.from_url(f"{drawing_server.url}/openapi.json")
    checked = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @hypothesis.given(case=operation.as_strategy())
        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        def ask(case: Any) -> None:
            reply = case.call()
            # A time limit of next to nothing has passed when the request has arrived.
            is_late = reply.status_code == 504 and "timeout" in (case.body or {})
            assert is_late or reply.status_code // 100 in (2, 4), (reply.status_code, case)

        ask()
        checked += 1
    assert checked >= 10
