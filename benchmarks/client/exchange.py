"""One request over HTTP to any server of OpenAI's API, and its answer with the times of its parts.

The known forms of answers are

* chat chunks with text in `delta.content`, speech in `delta.audio.data` and its words in
  `delta.audio.transcript` (OpenAI, this project; sglang-omni, whose pieces may each be a WAV file);
* chat chunks with `modality` "audio" and the speech in `delta.content` (vllm-omni);
* whole chat completions with `message.audio`, in any of several choices;
* speech as bytes, or as `speech.audio.delta` events, whose audio is in `audio` or `delta`;
* a batch of speech, whose `results` each have an `audio` or an `error`.
"""

import base64
import json
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from benchmarks.client.events import read_events
from benchmarks.client.sound import PCM_RATE, AudioReceiver

ERROR_CHARACTERS = 160
Json = dict[str, Any]


@dataclass(frozen=True)
class HttpRequest:
    """A POST of `body` to `address`. `keep` keeps the audio, not only its length."""

    address: str
    body: Json
    timeout_s: float = 120.0
    headers: tuple[tuple[str, str], ...] = ()
    keep: bool = False


@dataclass(frozen=True)
class RequestRecord:
    """The record of one request, with times in seconds.

    `began_s` is on the machine's monotonic clock. The others count from there: `ttfa_s` to the
    first audio, `took_s` to the last byte. `left_s` is the playback that remained then; `dry_s` is
    the time of underruns. A request with an `error` counts as failed, even if it has audio.
    """

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


@dataclass
class Answer:
    """What has arrived of one answer so far. Times are on the machine's monotonic clock."""

    began_s: float = field(default_factory=time.monotonic)
    ended_s: float = 0.0
    status: int | None = None
    error: str | None = None
    request_id: str | None = None
    text: str = ""
    transcript: str = ""
    finish: str | None = None
    first_text_s: float | None = None
    last_text_s: float | None = None
    prompt_tokens: int = 0
    tokens: int = 0
    audio: AudioReceiver = field(default_factory=AudioReceiver)

    @property
    def said(self) -> str:
        """Return the text, or the transcript of the speech where there is no text."""
        return self.text or self.transcript

    @property
    def took_s(self) -> float:
        """Return the seconds from the request to the end of the answer."""
        return self.ended_s - self.began_s

    @property
    def ttft_s(self) -> float | None:
        """Return the seconds from the request to the first text."""
        return None if self.first_text_s is None else self.first_text_s - self.began_s

    @property
    def tpot_s(self) -> float | None:
        """Return the mean seconds between tokens after the first; None if they came at once."""
        if self.first_text_s is None or self.last_text_s is None or self.tokens < 2:
            return None
        return (self.last_text_s - self.first_text_s) / (self.tokens - 1) or None

    @property
    def ttfa_s(self) -> float | None:
        """Return the seconds from the request to the first sample of audio."""
        return None if self.audio.first_at_s is None else self.audio.first_at_s - self.began_s

    @property
    def left_s(self) -> float:
        """Return the seconds of playback that remained when the answer ended."""
        ends = self.audio.playback.ends_at_s
        return 0.0 if ends is None else max(0.0, ends - self.ended_s)

    def record(self, number: int) -> RequestRecord:
        """Return the record of the answer, as that of request `number`."""
        playback = self.audio.playback
        return RequestRecord(
            number,
            self.began_s,
            self.took_s,
            self.ttfa_s,
            playback.audio_s,
            playback.underruns,
            playback.dry_s,
            self.left_s,
            self.status,
            self.error,
        )

    def add_chunk(self, chunk: Json, now: float) -> None:
        """Add one chunk or completion of a chat, one event of speech, or a batch of speech.

        Raises:
            ValueError: The chunk is an error; the message is the server's.
        """
        if "error" in chunk or chunk.get("type") == "speech.audio.error":
            raise ValueError(_reason(chunk.get("error", chunk)))
        if str(chunk.get("type", "")).startswith("speech.audio"):
            self._add_audio(chunk.get("audio") or chunk.get("delta"), now)
        for result in chunk.get("results", ()):
            self.add_chunk(result, now)
            self._add_audio(result["audio"], now)
        for choice in chunk.get("choices", ()):
            self._take_choice(choice, chunk.get("modality"), now)
        if usage := chunk.get("usage"):
            self._add_usage(usage)

    def _take_choice(self, choice: Json, modality: str | None, now: float) -> None:
        part = choice.get("delta") or choice.get("message") or {}
        self.finish = choice.get("finish_reason") or self.finish
        audio, content = part.get("audio") or {}, part.get("content")
        if modality == "audio":
            self._add_audio(content, now)
            content = None
        # With speech, the text may come only as the transcript of the audio.
        if content or audio.get("transcript"):
            self.first_text_s = self.first_text_s or now
            self.last_text_s = now
        self.text += content or ""
        self.transcript += audio.get("transcript") or ""
        self._add_audio(audio.get("data"), now)

    def _add_audio(self, data: str | None, now: float) -> None:
        if data:
            self.audio.receive(base64.b64decode(data), now, begins=True)

    def _add_usage(self, usage: Json) -> None:
        details = usage.get("completion_tokens_details") or {}
        out = usage.get("completion_tokens", usage.get("output_tokens", 0)) or 0
        self.prompt_tokens = usage.get("prompt_tokens", usage.get("input_tokens", 0)) or 0
        self.tokens = out - (details.get("audio_tokens") or 0)


async def send_request(session: aiohttp.ClientSession, request: HttpRequest) -> Answer:
    """Send one request and read its answer. Server errors are recorded, not raised.

    An answer with an `error` has failed, even if it has content.
    """
    data = json.dumps(request.body).encode()
    headers = {"Content-Type": "application/json", **dict(request.headers)}
    timeout = aiohttp.ClientTimeout(total=request.timeout_s)
    answer = Answer(audio=AudioReceiver(keep=request.keep))
    try:
        async with session.post(
            request.address, data=data, headers=headers, timeout=timeout
        ) as reply:
            answer.status = reply.status
            answer.request_id = reply.headers.get("X-Request-Id")
            if reply.status == 200:
                await _read(reply, answer)
            else:
                answer.error = (await reply.text())[:ERROR_CHARACTERS]
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError, KeyError) as error:
        answer.error = f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS]
    answer.ended_s = time.monotonic()
    return answer


async def _read(reply: aiohttp.ClientResponse, answer: Answer) -> None:
    answer.audio.rate = int(reply.headers.get("X-Sample-Rate", PCM_RATE))
    if reply.content_type == "text/event-stream":
        answer.error = await _read_events(reply, answer)
    elif reply.content_type == "application/json":
        answer.add_chunk(await reply.json(), time.monotonic())
        # An answer in one piece has no time of its first token.
        answer.first_text_s = answer.last_text_s = None
    else:
        async for data in reply.content.iter_any():
            answer.audio.receive(data, time.monotonic())


async def _read_events(reply: aiohttp.ClientResponse, answer: Answer) -> str | None:
    """Read a stream to its end. Return an error, or None if the stream ended properly."""
    async for event in read_events(reply):
        if event == b"[DONE]":
            return None
        chunk = json.loads(event)
        answer.add_chunk(chunk, time.monotonic())
        if chunk.get("type") == "speech.audio.done":
            return None
    return "the stream ended without its last event"


def _reason(error: Any) -> str:
    return str(error.get("message", error) if isinstance(error, dict) else error)
