"""One request for speech over HTTP, as a listener sees it."""

from dataclasses import dataclass
from typing import Any

import aiohttp

from benchmarks.client.exchange import Call, Record, exchange
from benchmarks.client.texts import TEXTS

# What a request for speech is told that ended well and without any.
MUTE = "an answer without audio"


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
        """The JSON of one request. Without streaming it asks for a complete file, as a batch."""
        said = {"input": self.texts[number % len(self.texts)]}
        body = {"model": self.model, "seed": number, "response_format": self.audio_format}
        body |= {**said, "stream_format": "audio"} if self.streaming else {"items": [said]}
        return body if self.voice is None else {**body, "voice": self.voice}

    async def ask(self, session: aiohttp.ClientSession, number: int) -> Record:
        """Make one request and listen to its end. Never raises for what the server does."""
        route = "/v1/audio/speech" if self.streaming else "/v1/audio/speech/batch"
        call = Call(f"{self.url}{route}", self.body(number), self.timeout_s)
        answer = await exchange(session, call)
        if answer.error is None and answer.ear.first_at_s is None:
            answer.error = MUTE
        return answer.record(number)
