"""Servers that answer as others do: the bytes that their documentation shows, played back.

None of them could be run here; what each sends is written down from its documentation. The audio
is two pieces of a tone, so that everything that listens finds it.
"""

import asyncio
import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from aiohttp import web

from sglang_omni.media.wav import build_header

Json = dict[str, Any]
RATE = 24_000
PIECES = [(8000 * np.sin(np.arange(2400) / 9)).astype("<i2").tobytes()] * 2
USAGE = {"prompt_tokens": 11, "completion_tokens": 9, "total_tokens": 20}


def text64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def chunk(delta: Json, **more: Any) -> Json:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"delta": delta}], **more}


def openai(speech: bool) -> list[Json]:
    """The id first, words as a transcript, raw samples, the usage last."""
    if not speech:
        said = [chunk({"role": "assistant", "content": ""}), chunk({"content": "It is 7."})]
    else:
        said = [chunk({"audio": {"id": "audio_1"}}), chunk({"audio": {"transcript": "It is 7."}})]
        said += [chunk({"audio": {"data": text64(piece)}}) for piece in PIECES]
        said += [chunk({"audio": {"expires_at": 1}})]
    details = {"completion_tokens_details": {"audio_tokens": 4 * speech}}
    return [*said, {"choices": [], "usage": USAGE | details}]


def sglang_omni(speech: bool) -> list[Json]:
    """Text deltas, every audio chunk a WAV file of its own, usage in the last chunk."""
    files = [build_header(RATE, len(piece)) + piece for piece in PIECES]
    sound = [chunk({"audio": {"id": "a", "data": text64(file)}}) for file in files]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": USAGE}
    return [chunk({"role": "assistant"}), chunk({"content": "It is 7."}), *sound[: 2 * speech], end]


def vllm_omni(speech: bool) -> list[Json]:
    """Chunks of one modality each; audio as a WAV file in the content."""
    files = [build_header(RATE, len(piece)) + piece for piece in PIECES]
    sound = [chunk({"content": text64(file)}, modality="audio") for file in files]
    end = {"choices": [], "usage": USAGE}
    return [chunk({"content": "It is 7."}, modality="text"), *sound[: 2 * speech], end]


CHATS: dict[str, Callable[[bool], list[Json]]] = {
    "openai": openai,
    "sglang-omni": sglang_omni,
    "vllm-omni": vllm_omni,
}


def whole(speech: bool) -> Json:
    """A complete answer."""
    message: Json = {"role": "assistant", "content": "It is 7."}
    if speech:
        data = build_header(RATE, sum(map(len, PIECES))) + b"".join(PIECES)
        message = {"content": None, "audio": {"transcript": "It is 7.", "data": text64(data)}}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE}


@dataclass
class Peer:
    """A running fake, and the bodies that it was sent, by route."""

    url: str
    bodies: list[tuple[str, Json]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


def _app(dialect: str, peer: Peer) -> web.Application:
    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "peer-model"}]})

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        peer.bodies.append((request.path, body))
        peer.keys.append(request.headers.get("Authorization"))
        speech = "audio" in body.get("modalities", ())
        if not body["stream"]:
            return web.json_response(whole(speech))
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        for event in CHATS[dialect](speech):
            await asyncio.sleep(0.005)
            await reply.write(f"data: {json.dumps(event)}\n\n".encode())
        await reply.write(b"data: [DONE]\n\n")
        return reply

    async def speak(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        peer.bodies.append((request.path, body))
        if dialect == "vllm-omni" and body.get("stream"):
            reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await reply.prepare(request)
            for piece in PIECES:
                event = {"type": "speech.audio.delta", "audio": text64(piece)}
                await reply.write(f"event: delta\ndata: {json.dumps(event)}\n\n".encode())
            await reply.write(b'data: {"type": "speech.audio.done", "usage": {}}\n\n')
            return reply
        head = b"" if body["response_format"] == "pcm" else build_header(RATE, None)
        return web.Response(body=head + b"".join(PIECES), content_type="audio/wav")

    app = web.Application(client_max_size=1 << 26)
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/v1/audio/speech", speak)
    return app


@contextmanager
def playing_as(dialect: str) -> Iterator[Peer]:
    """A fake of a peer on a free loopback port, in a thread."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    peer = Peer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    loop, started = asyncio.new_event_loop(), threading.Event()

    def serve() -> None:
        asyncio.set_event_loop(loop)
        runner = web.AppRunner(_app(dialect, peer))
        loop.run_until_complete(runner.setup())
        loop.run_until_complete(web.SockSite(runner, listener).start())
        started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert started.wait(10)
        yield peer
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
