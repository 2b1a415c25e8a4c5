"""What is asked, whoever serves: one question or recitation, put in the words of each server.

Dialects differ in little. `openai`: `max_completion_tokens`, no video, no reference audio.
`ours` and `sglang-omni`: `max_tokens`, `video_url`, `ref_audio`; speech is streamed by
`stream_format` here and by `stream` there, as on `vllm-omni`. Here speech that is not streamed is a
batch of one text.
"""

import base64
import json
import os
import urllib.request
from dataclasses import dataclass
from typing import Any, Literal, get_args

from benchmarks.client.exchange import Call, Json

Dialect = Literal["ours", "openai", "sglang-omni", "vllm-omni"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
CHAT, SPEECH = "/v1/chat/completions", "/v1/audio/speech"
BATCH = "/v1/audio/speech/batch"
# What OpenAI speaks with where no voice is named: both of its routes demand one.
OPENAI_VOICE = "alloy"


class CannotAsk(ValueError):
    """A server of this dialect has no way to be asked that."""


@dataclass(frozen=True)
class Text:
    """Words of a message."""

    text: str


@dataclass(frozen=True)
class Media:
    """A file of a message: what it is, its bytes, and the name of its format ("png", "wav")."""

    kind: Literal["image", "audio", "video"]
    data: bytes
    form: str

    @property
    def uri(self) -> str:
        """The file as a data URI."""
        return f"data:{self.kind}/{self.form};base64,{base64.b64encode(self.data).decode()}"


Part = Text | Media


@dataclass(frozen=True)
class Ask:
    """One turn of a chat, after `turns` of (role, text). `temperature` None leaves it to the
    server; `speech` asks for the answer in speech as well as text."""

    parts: tuple[Part, ...]
    turns: tuple[tuple[str, str], ...] = ()
    max_tokens: int = 512
    temperature: float | None = 0.0
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    speech: bool = False


@dataclass(frozen=True)
class Recite:
    """A text to read aloud; if there is a recording, a WAV file `reference`
    that says `said`, it is read like that."""

    text: str
    reference: bytes | None = None
    said: str | None = None
    seed: int | None = None


Request = Ask | Recite


@dataclass(frozen=True)
class Target:
    """A server, and how to ask it. `key_variable` names the variable with its key: the key itself
    is never written anywhere. Not `streaming`, it is asked for whole answers."""

    url: str
    model: str
    dialect: Dialect = "ours"
    streaming: bool = True
    voice: str | None = None
    key_variable: str | None = None
    timeout_s: float = 600.0

    def call(self, request: Request) -> Call:
        """The HTTP request. Raises `CannotAsk`, and `KeyError` where the key is not set."""
        if isinstance(request, Ask):
            route, body = CHAT, self._chat(request)
        elif self.dialect == "ours" and not self.streaming:
            route, body = BATCH, _as_batch(self._say(request))
        else:
            route, body = SPEECH, self._say(request)
        headers: tuple[tuple[str, str], ...] = ()
        if self.key_variable:
            headers = (("Authorization", f"Bearer {os.environ[self.key_variable]}"),)
        return Call(self.url.rstrip("/") + route, body, self.timeout_s, headers, keep=True)

    def _chat(self, ask: Ask) -> Json:
        limit = "max_completion_tokens" if self.dialect == "openai" else "max_tokens"
        messages: list[Json] = [{"role": role, "content": text} for role, text in ask.turns]
        messages.append({"role": "user", "content": self._content(ask.parts)})
        body: Json = {"model": self.model, "messages": messages, limit: ask.max_tokens}
        body["stream"] = self.streaming
        if self.streaming:
            body["stream_options"] = {"include_usage": True}
        for name in ("temperature", "top_p", "seed"):
            if (value := getattr(ask, name)) is not None:
                body[name] = value
        if ask.stop:
            body["stop"] = list(ask.stop)
        if ask.speech:
            body |= {"modalities": ["text", "audio"], "audio": self._audio()}
        return body

    def _audio(self) -> Json:
        voice = self.voice or (OPENAI_VOICE if self.dialect == "openai" else None)
        form = "pcm16" if self.streaming else "wav"
        return {"format": form} | ({"voice": voice} if voice else {})

    def _content(self, parts: tuple[Part, ...]) -> str | list[Json]:
        if len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
        return [self._part(part) for part in parts]

    def _part(self, part: Part) -> Json:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        if part.kind == "audio":
            data = base64.b64encode(part.data).decode()
            return {"type": "input_audio", "input_audio": {"data": data, "format": part.form}}
        if part.kind == "video" and self.dialect == "openai":
            raise CannotAsk("OpenAI's API takes no video")
        return {"type": f"{part.kind}_url", f"{part.kind}_url": {"url": part.uri}}

    def _say(self, recite: Recite) -> Json:
        body: Json = {"model": self.model, "input": recite.text}
        bare = self.streaming and self.dialect in ("openai", "sglang-omni")
        body["response_format"] = "pcm" if bare else "wav"
        body |= self._streamed()
        if voice := self.voice or (OPENAI_VOICE if self.dialect == "openai" else None):
            body["voice"] = voice
        if recite.seed is not None and self.dialect != "openai":
            body["seed"] = recite.seed
        if recite.reference is not None:
            if self.dialect == "openai":
                raise CannotAsk("OpenAI's API speaks like no recording")
            body |= {"ref_audio": Media("audio", recite.reference, "wav").uri}
            body |= {"ref_text": recite.said} if recite.said else {}
        return body

    def _streamed(self) -> dict[str, Any]:
        if not self.streaming:
            return {}
        if self.dialect in ("ours", "openai"):
            return {"stream_format": "audio"}
        return {"stream": True, "stream_format": "audio"}


def _as_batch(body: Json) -> Json:
    """A request for one speech as a batch of it alone."""
    shared = {name: value for name, value in body.items() if name != "input"}
    return {**shared, "items": [{"input": body["input"]}]}


def timeline(target: Target, request_id: str) -> Json | None:
    """The stages of a request, from a server that tells them; None where it does not."""
    headers = {}
    if target.key_variable:
        headers["Authorization"] = f"Bearer {os.environ[target.key_variable]}"
    address = f"{target.url.rstrip('/')}/v1/requests/{request_id}"
    try:
        request = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as reply:
            found: Json = json.load(reply)
            return found
    except (OSError, ValueError):
        return None
