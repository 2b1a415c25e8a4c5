"""Requests of a soak: every kind, from clients who leave, read slowly or send invalid requests."""

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
ClientBehaviour = Literal["patient", "leaves", "slow", "errs"]

CHAT, SPEECH = "/v1/chat/completions", "/v1/audio/speech"
TEXT = "the mill stands by the river and runs past old stones under a grey sky at dawn"
WORDS = TEXT.split()
BAD_BODIES: list[Any] = [
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
class SoakRequest:
    """One request and how its client behaves.

    `end` is the last event of a complete answer, for answers that have one. The client may leave
    after `leaves_after_s` seconds.
    """

    path: str
    body: Any
    end: bytes
    behaviour: ClientBehaviour
    leaves_after_s: float


def draw_request(rng: random.Random, speech_only: bool) -> SoakRequest:
    """Draw the next request of a soak."""
    behaviour = rng.choices(["patient", "leaves", "slow", "errs"], [55, 25, 10, 10])[0]
    leaves_after_s = rng.choice([0.0, 0.01, 0.1, 0.5, 1.0]) * rng.random()
    if behaviour == "errs":
        return SoakRequest(
            rng.choice([CHAT, SPEECH]), rng.choice(BAD_BODIES), b"", "errs", leaves_after_s
        )
    path, body, end = (_speech if speech_only or rng.random() < 0.4 else _chat)(rng)
    return SoakRequest(path, body, end, behaviour, leaves_after_s)  # type: ignore[arg-type]


def _speech(rng: random.Random) -> tuple[str, Any, bytes]:
    body: dict[str, Any] = {"model": "ming-omni", "input": _text(rng, 6)}
    kind = rng.choice(["wav", "pcm", "sse"])
    if kind == "sse":
        return SPEECH, {**body, "stream_format": "sse"}, b"speech.audio.done"
    return SPEECH, {**body, "response_format": kind}, b""


def _chat(rng: random.Random) -> tuple[str, Any, bytes]:
    content: list[Any] = [{"type": "text", "text": _text(rng, 20)}]
    if rng.random() < 0.25:
        content.append({"type": "image_url", "image_url": {"url": _picture(rng)}})
    message = {"role": "user", "content": content}
    body: dict[str, Any] = {"model": "ming-omni", "messages": [message]}
    body |= {"max_tokens": rng.randint(1, 16), "temperature": rng.choice([0, 1])}
    if rng.random() < 0.3:
        body["modalities"] = ["text", "audio"]
    if rng.random() < 0.6:
        return CHAT, {**body, "stream": True}, b"data: [DONE]\n\n"
    return CHAT, body, b"}"


def _text(rng: random.Random, max_words: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, max_words))) + "."


def _picture(rng: random.Random) -> str:
    """Draw one of fifty pictures, so that some repeat."""
    noise = np.random.default_rng(rng.randrange(50)).integers(0, 255, (64, 64, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def send_soak_request(
    session: aiohttp.ClientSession, url: str, request: SoakRequest
) -> tuple[Outcome, str]:
    """Send a request with its client's behaviour.

    Return the outcome, and details of a lost request.
    """
    content = request.body if isinstance(request.body, bytes) else json.dumps(request.body).encode()
    headers = {"Content-Type": "application/json"}
    try:
        async with asyncio.timeout(
            request.leaves_after_s if request.behaviour == "leaves" else None
        ):
            async with session.post(f"{url}{request.path}", data=content, headers=headers) as reply:
                return _judge(request, reply.status, await _read(reply, request.behaviour))
    except TimeoutError:
        if request.behaviour == "leaves":
            return "left", ""
        return "lost", "no answer"
    except aiohttp.ClientPayloadError:
        return "failed visibly", "cut"
    except aiohttp.ClientError as error:
        return "lost", f"{type(error).__name__}: {error}"


async def _read(reply: aiohttp.ClientResponse, behaviour: ClientBehaviour) -> bytes:
    if behaviour != "slow":
        return await reply.read()
    chunks = []
    async for chunk in reply.content.iter_chunked(4096):
        chunks.append(chunk)
        await asyncio.sleep(0.005)
    return b"".join(chunks)


def _judge(request: SoakRequest, status: int, body: bytes) -> tuple[Outcome, str]:
    if status == 200:
        if b'"error":' in body[-2000:] and not body.rstrip().endswith(request.end or b"\0"):
            return "failed visibly", body[-200:].decode(errors="replace")
        is_complete = bool(body) and (not request.end or request.end in body[-2000:])
        return (
            ("completed", "")
            if is_complete
            else ("lost", f"the answer is incomplete: {body[-200:]!r}")
        )
    try:
        error = json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return "lost", f"{status} without an error object: {body[:200]!r}"
    if request.behaviour == "errs" and status >= 500:
        return "lost", f"status {status} for an invalid body: {error}"
    return ("refused" if status < 500 else "failed visibly"), str(error)
