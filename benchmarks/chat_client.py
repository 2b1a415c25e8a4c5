"""One streamed chat request over HTTP, as its reader and listener see it."""

import base64
import io
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
import numpy as np
from PIL import Image

from benchmarks.playback import Piece, Playback
from benchmarks.speech_client import ERROR_CHARACTERS
from benchmarks.speech_texts import TEXTS

Kind = Literal["text", "image", "speech"]

# pcm16 of a chat answer, by OpenAI's definition.
AUDIO_BYTES_PER_S = 2 * 24_000
CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class ChatQuery:
    """What to ask: text in all kinds, with a picture or for speech besides.

    Request number n has text n of the list, modulo its length, and a picture of its own of
    `side` x `side` pixels: one that comes again would not be encoded again.
    """

    url: str
    model: str
    kind: Kind = "text"
    side: int = 1024
    max_tokens: int = 256
    voice: str | None = None
    texts: tuple[str, ...] = TEXTS
    timeout_s: float = 120.0

    def body(self, number: int) -> dict[str, Any]:
        """The JSON of one request."""
        text = f"{number}. {self.texts[number % len(self.texts)]}"
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if self.kind == "image":
            content.insert(
                0, {"type": "image_url", "image_url": {"url": picture(number, self.side)}}
            )
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": self.max_tokens,
        }
        if self.kind == "speech":
            audio = {"format": "pcm16"} | ({"voice": self.voice} if self.voice else {})
            body |= {"modalities": ["text", "audio"], "audio": audio, "seed": number}
        return body

    async def ask(self, session: aiohttp.ClientSession, number: int) -> "ChatRecord":
        """Make request `number`, and read it to its end. Never raises for what the server does."""
        data = json.dumps(self.body(number)).encode()
        headers = {"Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(total=self.timeout_s)
        answer, status, error = _Answer(time.monotonic()), None, None
        try:
            async with session.post(
                self.url + CHAT, data=data, headers=headers, timeout=timeout
            ) as reply:
                status = reply.status
                if status == 200:
                    error = await answer.read(reply)
                else:
                    error = (await reply.text())[:ERROR_CHARACTERS]
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as caught:
            error = f"{type(caught).__name__}: {caught}"[:ERROR_CHARACTERS]
        if error is None and self.kind == "speech" and answer.playback.audio_s == 0:
            error = "an answer without audio"
        return answer.record(number, status, error)


@dataclass(frozen=True)
class ChatRecord:
    """How one request went. Times in seconds; `began_s` is on the machine's monotonic clock, the
    others count from there. `tokens` are those of the text. A request with an `error` counts as
    failed, whatever else it brought."""

    number: int
    began_s: float
    took_s: float
    ttft_s: float | None
    tpot_s: float | None
    tokens: int
    ttfa_s: float | None
    audio_s: float
    underruns: int
    dry_s: float
    left_s: float
    status: int | None
    error: str | None


@dataclass
class _Answer:
    """What has come of one answer so far."""

    began_s: float
    first_text_s: float | None = None
    last_text_s: float | None = None
    first_audio_s: float | None = None
    tokens: int = 0
    playback: Playback = field(default_factory=Playback)

    async def read(self, reply: aiohttp.ClientResponse) -> str | None:
        """Take the events of a stream; returns what was wrong with it, None if it ended well."""
        async for event in _events(reply):
            if event == b"[DONE]":
                return None
            chunk = json.loads(event)
            if "error" in chunk:
                return str(chunk["error"].get("message", chunk["error"]))[:ERROR_CHARACTERS]
            self._take(chunk, time.monotonic())
        return "the stream ended without [DONE]"

    def _take(self, chunk: dict[str, Any], now: float) -> None:
        for choice in chunk.get("choices", ()):
            delta = choice.get("delta", {})
            audio = delta.get("audio") or {}
            # With speech, the text comes as the transcript of the audio.
            if delta.get("content") or audio.get("transcript"):
                self.first_text_s = self.first_text_s or now
                self.last_text_s = now
            if audio.get("data"):
                self._hear(len(audio["data"]) * 3 // 4, now)
        if usage := chunk.get("usage"):
            details = usage.get("completion_tokens_details") or {}
            self.tokens = usage["completion_tokens"] - (details.get("audio_tokens") or 0)

    def _hear(self, count: int, now: float) -> None:
        self.first_audio_s = self.first_audio_s or now
        self.playback = self.playback.then(Piece(now, count / AUDIO_BYTES_PER_S))

    def record(self, number: int, status: int | None, error: str | None) -> ChatRecord:
        """The record of an answer that has ended."""
        now, playback = time.monotonic(), self.playback
        first, last = self.first_text_s, self.last_text_s
        between = None if first is None or last is None else last - first
        return ChatRecord(
            number=number,
            began_s=self.began_s,
            took_s=now - self.began_s,
            ttft_s=None if first is None else first - self.began_s,
            tpot_s=between / (self.tokens - 1) if between and self.tokens > 1 else None,
            tokens=self.tokens,
            ttfa_s=None if self.first_audio_s is None else self.first_audio_s - self.began_s,
            audio_s=playback.audio_s,
            underruns=playback.underruns,
            dry_s=playback.dry_s,
            left_s=0.0 if playback.ends_at_s is None else max(0.0, playback.ends_at_s - now),
            status=status,
            error=error,
        )


async def _events(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The data of each server-sent event, however the bytes are cut."""
    rest = b""
    async for data in reply.content.iter_any():
        *whole, rest = (rest + data).split(b"\n\n")
        for event in whole:
            if event.startswith(b"data: "):
                yield event.removeprefix(b"data: ")


def picture(number: int, side: int) -> str:
    """A JPEG that no other number has, as a data URI."""
    down = (np.arange(side) + 7 * number) % 256
    across = (np.arange(side) + 16 * (number // 256)) % 256
    pixels = np.stack(np.broadcast_arrays(down[:, None], across[None, :], number % 256), axis=-1)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
