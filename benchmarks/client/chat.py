"""A streamed chat request over HTTP, with the times of its text and audio."""

import base64
import io
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import numpy as np
from PIL import Image

from benchmarks.client.exchange import HttpRequest, RequestRecord, send_request
from benchmarks.client.speech import NO_AUDIO
from benchmarks.client.texts import TEXTS

Kind = Literal["text", "image", "speech"]

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class ChatQuery:
    """The chat requests of a load: text in every kind, with an image or for speech besides.

    Request number n has text n of the list, modulo its length, and an image of its own of `side` x
    `side` pixels, because a repeated image would not be encoded again.
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
        """Return the JSON of one request."""
        text = f"{number}. {self.texts[number % len(self.texts)]}"
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if self.kind == "image":
            content.insert(
                0, {"type": "image_url", "image_url": {"url": unique_picture(number, self.side)}}
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

    async def send(self, session: aiohttp.ClientSession, number: int) -> "ChatRecord":
        """Send request `number` and read its answer. Server errors are recorded, not raised."""
        request = HttpRequest(self.url + CHAT, self.body(number), self.timeout_s)
        answer = await send_request(session, request)
        if answer.error is None and self.kind == "speech" and answer.audio.playback.audio_s == 0:
            answer.error = NO_AUDIO
        shared = vars(answer.record(number))
        return ChatRecord(
            **shared, ttft_s=answer.ttft_s, tpot_s=answer.tpot_s, tokens=answer.tokens
        )


@dataclass(frozen=True)
class ChatRecord(RequestRecord):
    """The record of a chat: that of its speech, and the times of its text in seconds.

    `ttft_s` is the time to the first token, `tpot_s` that between later tokens.
    """

    ttft_s: float | None
    tpot_s: float | None
    tokens: int


def unique_picture(number: int, side: int) -> str:
    """Return a JPEG that no other number has, as a data URI."""
    down = (np.arange(side) + 7 * number) % 256
    across = (np.arange(side) + 16 * (number // 256)) % 256
    pixels = np.stack(np.broadcast_arrays(down[:, None], across[None, :], number % 256), axis=-1)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
