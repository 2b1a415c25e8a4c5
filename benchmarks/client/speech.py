"""A speech request over HTTP, with the times of its audio."""

from dataclasses import dataclass
from typing import Any

import aiohttp

from benchmarks.client.exchange import HttpRequest, RequestRecord, send_request
from benchmarks.client.texts import TEXTS

# The error of a request for speech that ended without error and without audio.
NO_AUDIO = "an answer without audio"


@dataclass(frozen=True)
class SpeechQuery:
    """The speech requests of a load. Request n has text n, modulo their number, and seed n."""

    url: str
    model: str
    voice: str | None = None
    audio_format: str = "wav"
    streaming: bool = True
    texts: tuple[str, ...] = TEXTS
    timeout_s: float = 120.0

    def body(self, number: int) -> dict[str, Any]:
        """Return the JSON of one request.

        Without streaming it asks for a complete file, as a batch.
        """
        speech_input = {"input": self.texts[number % len(self.texts)]}
        body = {"model": self.model, "seed": number, "response_format": self.audio_format}
        body |= (
            {**speech_input, "stream_format": "audio"}
            if self.streaming
            else {"items": [speech_input]}
        )
        return body if self.voice is None else {**body, "voice": self.voice}

    async def send(self, session: aiohttp.ClientSession, number: int) -> RequestRecord:
        """Send one request and read its answer. Server errors are recorded, not raised."""
        route = "/v1/audio/speech" if self.streaming else "/v1/audio/speech/batch"
        request = HttpRequest(f"{self.url}{route}", self.body(number), self.timeout_s)
        answer = await send_request(session, request)
        if answer.error is None and answer.audio.first_at_s is None:
            answer.error = NO_AUDIO
        return answer.record(number)
