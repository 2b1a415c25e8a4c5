"""OpenAI's chat completion chunks, made from the events of the pipeline."""

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from sglang_omni.entrypoints.http.responses.chat_completion import (
    Answer,
    Choices,
    Json,
    build_chat_notice,
    build_image,
    build_invalid_calls,
    build_notices,
    build_usage,
    remember_audio,
    sum_usage,
)
from sglang_omni.entrypoints.http.responses.image_files import (
    FileEvent,
    FinishedFile,
    PreviewFile,
)
from sglang_omni.entrypoints.http.responses.json_template import JsonTemplate
from sglang_omni.entrypoints.http.responses.numbered_events import number_events
from sglang_omni.entrypoints.http.responses.sse import Data, encode_json
from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
    UnspokenText,
    Usage,
)
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.tools import ToolCall, ToolCallDelta, ToolCallStart, build_tool_call


async def stream_chunks(choices: Choices, answer: Answer) -> AsyncGenerator[Data, None]:
    """Yield the `chat.completion.chunk` objects, each as soon as its event arrives."""
    writers = [ChunkWriter(answer, index) for index in range(len(choices))]
    usages: list[Usage] = []
    async with aclosing(number_events(choices)) as events:
        async for index, event in events:
            for chunk in await writers[index].write(event):
                yield chunk
            if isinstance(event, Finished):
                usages.append(event.usage)
    if answer.include_usage:
        header = answer.build_header("chat.completion.chunk")
        yield {**header, "choices": [], "usage": build_usage(sum_usage(usages))}


class ChunkWriter:
    """Converter of the events of one streamed choice to chunks.

    The opening chunks (role, audio id) are written with the first event. Until then nothing is
    sent, so that an early error can still set the HTTP status.
    """

    def __init__(self, answer: Answer, index: int = 0) -> None:
        self._answer, self._index = answer, index
        self._encoder = answer.audio.make_encoder(streaming=True) if answer.audio else None
        self._is_opened = False
        self._num_calls = 0
        self._has_called = False
        # The template of the argument deltas of the call that has begun.
        self._arguments_template: JsonTemplate | None = None
        self._transcripts: list[str] = []
        self._text_template = JsonTemplate(lambda text: self._build_chunk({"content": text}))
        self._audio_template = JsonTemplate(lambda data: self._build_audio_chunk(data=data))

    async def write(self, event: FileEvent) -> list[Data]:
        """Return the chunks of `event`, possibly none."""
        opening = [] if self._is_opened else self._build_opening()
        self._is_opened = True
        match event:
            case TextDelta(text, logprobs) if (text or logprobs) and self._answer.shows_text:
                if self._answer.token_text is None:
                    return [*opening, self._text_template.fill(text)]
                logprobs_field = self._answer.build_logprobs([event])
                return [*opening, self._build_chunk({"content": text}, **logprobs_field)]
            case ReasoningDelta(text) if self._answer.shows_text:
                return [*opening, self._build_chunk({"reasoning_content": text})]
            case ToolCallStart() | ToolCallDelta() | ToolCalled():
                return [*opening, *self._build_call(event)]
            case TranscriptDelta(text) if text and self._encoder:
                self._transcripts.append(text)
                return [*opening, self._build_audio_chunk(transcript=text)]
            case UnspokenText() if self._encoder:
                notices = build_notices([build_chat_notice(event, self._index)])
                return [*opening, {**self._build_chunk({}), **notices}]
            case AudioDelta(pcm) if self._encoder:
                return [*opening, *self._build_audio_data(await self._encoder.encode(pcm))]
            case PreviewFile():
                return [*opening, await self._build_image_chunk("partial_images", event)]
            case FinishedFile():
                return [*opening, await self._build_image_chunk("images", event)]
            case Finished():
                return [*opening, *await self._build_closing(event)]
        return opening

    def _build_opening(self) -> list[Data]:
        role = {"role": "assistant", **({"content": ""} if self._answer.shows_text else {})}
        first = {**self._build_chunk(role), **self._answer.build_seed_scope()}
        return [first, self._build_audio_chunk()] if self._encoder else [first]

    def _build_call(self, event: ToolCallStart | ToolCallDelta | ToolCalled) -> list[Data]:
        """Return the chunks of a call: one for its beginning, and one for each delta.

        A call that no grammar holds to its form is parsed at its end, and is one chunk.
        """
        match event:
            case ToolCallStart(name):
                index = self._begin_call()
                self._arguments_template = JsonTemplate(
                    lambda text: self._build_arguments_chunk(index, text)
                )
                return [self._build_call_chunk(index, ToolCall(name, ""))]
            case ToolCallDelta(text):
                assert self._arguments_template is not None
                return [self._arguments_template.fill(text)]
            case ToolCalled(call):
                self._has_called = True
                is_sent, self._arguments_template = self._arguments_template is not None, None
                return [] if is_sent else [self._build_call_chunk(self._begin_call(), call)]

    def _begin_call(self) -> int:
        """Return the index of the next call."""
        self._num_calls += 1
        return self._num_calls - 1

    def _build_call_chunk(self, index: int, call: ToolCall) -> Json:
        return self._build_chunk({"tool_calls": [{"index": index, **build_tool_call(call)}]})

    def _build_arguments_chunk(self, index: int, text: str) -> Json:
        delta = {"index": index, "function": {"arguments": text}}
        return self._build_chunk({"tool_calls": [delta]})

    async def _build_closing(self, finished: Finished) -> list[Data]:
        reason = finished.choose_reason(self._has_called)
        closing: list[Data] = [self._build_chunk({}, reason, **build_invalid_calls(finished))]
        if self._encoder:
            transcript = "".join(self._transcripts)
            last_audio = self._build_audio_data(await self._encoder.close())
            expires_at = await remember_audio(self._answer, self._index, transcript)
            expiry = self._build_audio_chunk(expires_at=expires_at)
            closing = [*last_audio, expiry, *closing]
        return closing

    async def _build_image_chunk(self, name: str, image: FinishedFile | PreviewFile) -> bytes:
        chunk = self._build_chunk({name: [build_image(image)]})
        return await run_off_loop(len(image.base64), encode_json, chunk)

    def _build_audio_data(self, data: bytes) -> list[Data]:
        return [self._audio_template.fill_plain(base64.b64encode(data))] if data else []

    def _build_audio_chunk(self, **fields: Any) -> Json:
        return self._build_chunk(
            {"audio": {"id": self._answer.make_audio_id(self._index), **fields}}
        )

    def _build_chunk(self, delta: Json, finish_reason: str | None = None, **fields: Any) -> Json:
        choice = {"index": self._index, "delta": delta, **fields, "finish_reason": finish_reason}
        # With include_usage every chunk has the field; it is null in all but the last.
        usage = {"usage": None} if self._answer.include_usage else {}
        return {**self._answer.build_header("chat.completion.chunk"), "choices": [choice], **usage}
