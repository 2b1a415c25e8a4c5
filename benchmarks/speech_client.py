"""One request for speech over HTTP, as a listener sees it."""

import time
from dataclasses import dataclass
from typing import Any

import aiohttp

from benchmarks.playback import Piece, Playback
from benchmarks.speech_texts import TEXTS
from sglang_omni.media.wav import BYTES_PER_SAMPLE, HEADER_BYTES

ERROR_CHARACTERS = 160


@dataclass(frozen=True)
class SpeechQuery:
    """What to ask. Request number n reads text n of the list, modulo its length, with seed n."""

    url: str
    model: str
    voice: str | None = None
    audio_format: str = "wav"
    streaming: bool = True
    texts: tuple[str, ...] = TEXTS
    timeout_s: float = 120.0

    def body(self, number: int) -> dict[str, Any]:
        """The JSON of one request. Without streaming it asks for a complete file."""
        text = self.texts[number % len(self.texts)]
        body = {"model": self.model, "input": text, "seed": number}
        body["response_format"] = self.audio_format
        if self.streaming:
            body["stream_format"] = "audio"
        return body if self.voice is None else {**body, "voice": self.voice}

    async def ask(self, session: aiohttp.ClientSession, number: int) -> "SpeechRecord":
        """Make one request and listen to its end. Never raises for what the server does."""
        began_s, status, ear, error = time.monotonic(), None, _Ear(0, 1.0), None
        timeout = aiohttp.ClientTimeout(total=self.timeout_s)
        try:
            address = f"{self.url}/v1/audio/speech"
            async with session.post(address, json=self.body(number), timeout=timeout) as reply:
                status = reply.status
                if status == 200:
                    ear = _ear_for(reply, self)
                    async for data in reply.content.iter_any():
                        ear.hear(len(data), time.monotonic())
                    error = None if ear.first_at_s else "an answer without audio"
                else:
                    error = (await reply.text())[:ERROR_CHARACTERS]
        except (TimeoutError, aiohttp.ClientError, OSError, KeyError) as caught:
            error = f"{type(caught).__name__}: {caught}"[:ERROR_CHARACTERS]
        return _record(number, began_s, ear, status, error)


@dataclass(frozen=True)
class SpeechRecord:
    """How one request went. `began_s` is on the machine's monotonic clock; `ttfa_s` is from there
    to the first byte of audio and `took_s` to the last; `left_s` is the playback that was left
    then. A request with an `error` counts as failed, whatever else it brought."""

    number: int
    began_s: float
    took_s: float
    ttfa_s: float | None
    audio_s: float
    underruns: int
    dry_s: float
    left_s: float
    status: int | None
    error: str | None


class _Ear:
    """Turns the bytes of one answer into playback."""

    def __init__(self, header_bytes: int, bytes_per_second: float) -> None:
        self._header_left = header_bytes
        self._bytes_per_second = bytes_per_second
        self.first_at_s: float | None = None
        self.playback = Playback()

    def hear(self, count: int, at_s: float) -> None:
        """Take `count` bytes that arrived at `at_s`. A header is no audio."""
        skipped = min(count, self._header_left)
        self._header_left -= skipped
        if count == skipped:
            return
        if self.first_at_s is None:
            self.first_at_s = at_s
        audio_s = (count - skipped) / self._bytes_per_second
        self.playback = self.playback.then(Piece(at_s, audio_s))


def _ear_for(reply: aiohttp.ClientResponse, query: SpeechQuery) -> _Ear:
    header = HEADER_BYTES if query.audio_format == "wav" else 0
    return _Ear(header, int(reply.headers["X-Sample-Rate"]) * BYTES_PER_SAMPLE)


def _record(
    number: int, began_s: float, ear: _Ear, status: int | None, error: str | None
) -> SpeechRecord:
    now, playback = time.monotonic(), ear.playback
    return SpeechRecord(
        number=number,
        began_s=began_s,
        took_s=now - began_s,
        ttfa_s=None if ear.first_at_s is None else ear.first_at_s - began_s,
        audio_s=playback.audio_s,
        underruns=playback.underruns,
        dry_s=playback.dry_s,
        left_s=0.0 if playback.ends_at_s is None else max(0.0, playback.ends_at_s - now),
        status=status,
        error=error,
    )
