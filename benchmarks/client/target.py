"""Servers of several dialects of OpenAI's API.

The module builds the HTTP request of one chat or speech request. The dialects differ in little.
`openai`: `max_completion_tokens`, no video, no reference audio. `ours` and `sglang-omni`:
`max_tokens`, `video_url`, `ref_audio`. Speech is streamed by `stream_format` here, and by `stream`
there and on `vllm-omni`. Speech that is not streamed is a batch of one text here.
"""

import base64
import json
import os
import urllib.request
from dataclasses import dataclass
from typing import Any, Literal, get_args

from benchmarks.client.exchange import HttpRequest, Json

Dialect = Literal["ours", "openai", "sglang-omni", "vllm-omni"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
CHAT, SPEECH = "/v1/chat/completions", "/v1/audio/speech"
BATCH = "/v1/audio/speech/batch"
# The default voice for OpenAI, both of whose routes require one.
OPENAI_VOICE = "alloy"


class UnsupportedRequest(ValueError):
    """The API of this dialect cannot express the request."""


@dataclass(frozen=True)
class TextPart:
    """A text part of a message."""

    text: str


@dataclass(frozen=True)
class MediaPart:
    """A file of a message: its kind, its bytes, and the name of its format ("png", "wav")."""

    kind: Literal["image", "audio", "video"]
    data: bytes
    form: str

    @property
    def uri(self) -> str:
        """Return the file as a data URI."""
        return f"data:{self.kind}/{self.form};base64,{base64.b64encode(self.data).decode()}"


Part = TextPart | MediaPart


@dataclass(frozen=True)
class ChatRequest:
    """One turn of a chat, after `turns` of (role, text).

    With `temperature` None the server uses its default. `speech` asks for speech as well as text.
    """

    parts: tuple[Part, ...]
    turns: tuple[tuple[str, str], ...] = ()
    max_tokens: int = 512
    temperature: float | None = 0.0
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    speech: bool = False


@dataclass(frozen=True)
class SpeechRequest:
    """A text to read aloud.

    With `reference`, a WAV file whose transcript is `said`, it is read in that voice.
    """

    text: str
    reference: bytes | None = None
    said: str | None = None
    seed: int | None = None


Request = ChatRequest | SpeechRequest


@dataclass(frozen=True)
class Target:
    """A server and how to send it requests.

    `key_variable` names the environment variable of its API key; the key itself is never written
    anywhere. Without `streaming` it is asked for whole answers.
    """

    url: str
    model: str
    dialect: Dialect = "ours"
    streaming: bool = True
    voice: str | None = None
    key_variable: str | None = None
    timeout_s: float = 600.0

    def call(self, request: Request) -> HttpRequest:
        """Build the HTTP request.

        Raises:
            UnsupportedRequest: The dialect cannot express the request.
            KeyError: The environment variable of the key is not set.
        """
        if isinstance(request, ChatRequest):
            route, body = CHAT, self._chat(request)
        elif self.dialect == "ours" and not self.streaming:
            route, body = BATCH, _as_batch(self._say(request))
        else:
            route, body = SPEECH, self._say(request)
        headers: tuple[tuple[str, str], ...] = ()
        if self.key_variable:
            headers = (("Authorization", f"Bearer {os.environ[self.key_variable]}"),)
        return HttpRequest(self.url.rstrip("/") + route, body, self.timeout_s, headers, keep=True)

    def _chat(self, request: ChatRequest) -> Json:
        max_tokens_field = "max_completion_tokens" if self.dialect == "openai" else "max_tokens"
        messages: list[Json] = [{"role": role, "content": text} for role, text in request.turns]
        messages.append({"role": "user", "content": self._content(request.parts)})
        body: Json = {
            "model": self.model,
            "messages": messages,
            max_tokens_field: request.max_tokens,
        }
        body["stream"] = self.streaming
        if self.streaming:
            body["stream_options"] = {"include_usage": True}
        for name in ("temperature", "top_p", "seed"):
            if (value := getattr(request, name)) is not None:
                body[name] = value
        if request.stop:
            body["stop"] = list(request.stop)
        if request.speech:
            body |= {"modalities": ["text", "audio"], "audio": self._audio()}
        return body

    def _audio(self) -> Json:
        voice = self.voice or (OPENAI_VOICE if self.dialect == "openai" else None)
        form = "pcm16" if self.streaming else "wav"
        return {"format": form} | ({"voice": voice} if voice else {})

    def _content(self, parts: tuple[Part, ...]) -> str | list[Json]:
        if len(parts) == 1 and isinstance(parts[0], TextPart):
            return parts[0].text
        return [self._part(part) for part in parts]

    def _part(self, part: Part) -> Json:
        if isinstance(part, TextPart):
            return {"type": "text", "text": part.text}
        if part.kind == "audio":
            data = base64.b64encode(part.data).decode()
            return {"type": "input_audio", "input_audio": {"data": data, "format": part.form}}
        if part.kind == "video" and self.dialect == "openai":
            raise UnsupportedRequest("OpenAI's API accepts no video")
        return {"type": f"{part.kind}_url", f"{part.kind}_url": {"url": part.uri}}

    def _say(self, request: SpeechRequest) -> Json:
        body: Json = {"model": self.model, "input": request.text}
        is_raw_pcm = self.streaming and self.dialect in ("openai", "sglang-omni")
        body["response_format"] = "pcm" if is_raw_pcm else "wav"
        body |= self._streamed()
        if voice := self.voice or (OPENAI_VOICE if self.dialect == "openai" else None):
            body["voice"] = voice
        if request.seed is not None and self.dialect != "openai":
            body["seed"] = request.seed
        if request.reference is not None:
            if self.dialect == "openai":
                raise UnsupportedRequest("OpenAI's API cannot clone a voice from a recording")
            body |= {"ref_audio": MediaPart("audio", request.reference, "wav").uri}
            body |= {"ref_text": request.said} if request.said else {}
        return body

    def _streamed(self) -> dict[str, Any]:
        if not self.streaming:
            return {}
        if self.dialect in ("ours", "openai"):
            return {"stream_format": "audio"}
        return {"stream": True, "stream_format": "audio"}


def _as_batch(body: Json) -> Json:
    """Turn the body of one speech request into a batch of one."""
    shared = {name: value for name, value in body.items() if name != "input"}
    return {**shared, "items": [{"input": body["input"]}]}


def fetch_timeline(target: Target, request_id: str) -> Json | None:
    """Return the timeline of a request, or None where the server has none."""
    headers = {}
    if target.key_variable:
        headers["Authorization"] = f"Bearer {os.environ[target.key_variable]}"
    address = f"{target.url.rstrip('/')}/v1/requests/{request_id}"
    try:
        request = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as reply:
            timeline: Json = json.load(reply)
            return timeline
    except (OSError, ValueError):
        return None
