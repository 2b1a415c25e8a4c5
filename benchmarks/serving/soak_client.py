"""Requests of a soak: every kind, made by clients who leave, who read slowly, and who err."""

import asyncio
import base64
import io
import json
import random
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import numpy as np
from PIL import Image

Outcome = Literal["completed", "refused", "failed visibly", "left", "lost"]
Manner = Literal["patient", "leaves", "slow", "errs"]

CHAT, SPEECH = "/v1/chat/completions", "/v1/audio/speech"
TEXT = "the mill stands by the river and runs past old stones under a grey sky at dawn"
WORDS = TEXT.split()
BAD: list[Any] = [
    b"{",
    b"\xff",
    b"[" * 5000,
    {},
    {"model": "none", "messages": []},
    {"model": "ming-omni", "input": " "},
    {"model": "ming-omni", "input": "hello", "voice": "nobody"},
    {"model": "ming-omni", "messages": [{"role": "user", "content": "a"}], "max_tokens": 0},
    {
        "model": "ming-omni",
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "data:,x"}]}],
    },
    {
        "model": "ming-omni",
        "messages": [{"role": "user", "content": "a"}],
        "images": ["http://127.0.0.1/private.png"],
    },
]


@dataclass(frozen=True)
class Ask:
    """One request and how its client behaves. `end` is what a whole answer ends with, if that is
    in its body; `moment` is when a client leaves, in seconds."""

    path: str
    body: Any
    end: bytes
    manner: Manner
    moment: float


def make(chance: random.Random, speech_only: bool) -> Ask:
    """The next request of a soak."""
    manner = chance.choices(["patient", "leaves", "slow", "errs"], [55, 25, 10, 10])[0]
    moment = chance.choice([0.0, 0.01, 0.1, 0.5, 1.0]) * chance.random()
    if manner == "errs":
        return Ask(chance.choice([CHAT, SPEECH]), chance.choice(BAD), b"", "errs", moment)
    path, body, end = (_speech if speech_only or chance.random() < 0.4 else _chat)(chance)
    return Ask(path, body, end, manner, moment)  # type: ignore[arg-type]


def _speech(chance: random.Random) -> tuple[str, Any, bytes]:
    body: dict[str, Any] = {"model": "ming-omni", "input": _text(chance, 6)}
    kind = chance.choice(["wav", "pcm", "sse"])
    if kind == "sse":
        return SPEECH, {**body, "stream_format": "sse"}, b"speech.audio.done"
    return SPEECH, {**body, "response_format": kind}, b""


def _chat(chance: random.Random) -> tuple[str, Any, bytes]:
    content: list[Any] = [{"type": "text", "text": _text(chance, 20)}]
    if chance.random() < 0.25:
        content.append({"type": "image_url", "image_url": {"url": _picture(chance)}})
    message = {"role": "user", "content": content}
    body: dict[str, Any] = {"model": "ming-omni", "messages": [message]}
    body |= {"max_tokens": chance.randint(1, 16), "temperature": chance.choice([0, 1])}
    if chance.random() < 0.3:
        body["modalities"] = ["text", "audio"]
    if chance.random() < 0.6:
        return CHAT, {**body, "stream": True}, b"data: [DONE]\n\n"
    return CHAT, body, b"}"


def _text(chance: random.Random, most: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, most))) + "."


def _picture(chance: random.Random) -> str:
    """One of fifty pictures, so that some come again."""
    noise = np.random.default_rng(chance.randrange(50)).integers(0, 255, (64, 64, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def perform(session: aiohttp.ClientSession, url: str, ask: Ask) -> tuple[Outcome, str]:
    """Make a request in its manner; how it ended, and what to say of it if it was lost."""
    content = ask.body if isinstance(ask.body, bytes) else json.dumps(ask.body).encode()
    headers = {"Content-Type": "application/json"}
    try:
        async with asyncio.timeout(ask.moment if ask.manner == "leaves" else None):
            async with session.post(f"{url}{ask.path}", data=content, headers=headers) as reply:
                return _judge(ask, reply.status, await _read(reply, ask.manner))
    except TimeoutError:
        if ask.manner == "leaves":
            return "left", ""
        return "lost", "no answer"
    except aiohttp.ClientPayloadError:
        return "failed visibly", "cut"
    except aiohttp.ClientError as error:
        return "lost", f"{type(error).__name__}: {error}"


async def _read(reply: aiohttp.ClientResponse, manner: Manner) -> bytes:
    if manner != "slow":
        return await reply.read()
    pieces = []
    async for piece in reply.content.iter_chunked(4096):
        pieces.append(piece)
        await asyncio.sleep(0.005)
    return b"".join(pieces)


def _judge(ask: Ask, status: int, body: bytes) -> tuple[Outcome, str]:
    if status == 200:
        if b'"error":' in body[-2000:] and not body.rstrip().endswith(ask.end or b"\0"):
            return "failed visibly", body[-200:].decode(errors="replace")
        whole = bool(body) and (not ask.end or ask.end in body[-2000:])
        return ("completed", "") if whole else ("lost", f"ended without an end: {body[-200:]!r}")
    try:
        error = json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return "lost", f"{status} without an envelope: {body[:200]!r}"
    if ask.manner == "errs" and status >= 500:
        return "lost", f"a bad body was a {status}: {error}"
    return ("refused" if status < 500 else "failed visibly"), str(error)
