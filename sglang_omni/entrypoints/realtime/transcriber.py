"""Transcribes the user's audio in the background, while no response is active."""

import asyncio
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import to_public_error
from sglang_omni.entrypoints.realtime.conversation import Conversation
from sglang_omni.entrypoints.realtime.error_event import error_to_json
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import AudioContent, Item, MessageItem, make_id
from sglang_omni.entrypoints.realtime.session_schema import Transcription
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import (
    ChatRequest,
    Finished,
    MediaPart,
    Message,
    TextDelta,
    TextPart,
    Usage,
)
from sglang_omni.pipeline.transcribe import build_transcription_prompt, max_transcript_tokens
from sglang_omni.protocol.sampling import SamplingParams


@dataclass(frozen=True)
class _Task:
    """A content part to transcribe."""

    item_id: str
    content_index: int
    options: Transcription


class Transcriber:
    """Transcribes one audio part at a time while no response is active.

    A response cancels a running transcription, which starts again after the response. So a response
    never waits for a transcription. A transcript is sent as one delta, when it is complete.
    """

    def __init__(
        self, backend: Backend, conversation: Conversation, sender: EventSender, tenant: str | None
    ) -> None:
        self._backend, self._conversation, self._sender = backend, conversation, sender
        self._tenant = tenant
        self._tasks: deque[_Task] = deque()
        self._has_tasks = asyncio.Event()
        self._may_run = asyncio.Event()
        self._may_run.set()
        self._running: asyncio.Task[None] | None = None

    def add(self, item: MessageItem, options: Transcription) -> None:
        """Queue the audio parts of an item that have no transcript."""
        for index, part in enumerate(item.content):
            if isinstance(part, AudioContent) and part.wav and part.transcript is None:
                self._tasks.append(_Task(item.id, index, options))
        if self._tasks:
            self._has_tasks.set()

    def pause(self) -> None:
        """Cancel the running transcription and start none until `resume`."""
        self._may_run.clear()
        if self._running is not None:
            self._running.cancel()

    def resume(self) -> None:
        """Start transcriptions again."""
        self._may_run.set()

    async def run(self) -> None:
        """Transcribe until cancelled."""
        while True:
            await self._has_tasks.wait()
            await self._may_run.wait()
            # Between the two waits, the queue may have been emptied or a response started.
            if self._tasks and self._may_run.is_set():
                await self._run_task(self._tasks[0])
            if not self._tasks:
                self._has_tasks.clear()

    async def _run_task(self, task: _Task) -> None:
        self._running = asyncio.create_task(self._transcribe(task))
        try:
            await asyncio.wait((self._running,))
        finally:
            self._running.cancel()
            await asyncio.wait((self._running,))
        if not self._running.cancelled():
            self._tasks.popleft()

    async def _transcribe(self, task: _Task) -> None:
        fields = {"item_id": task.item_id, "content_index": task.content_index}
        audio = self._find_audio(task)
        if audio is None:
            return
        try:
            text, usage = await self._generate_transcript(audio, task.options)
        except Exception as error:
            self._put_event("failed", **fields, error=error_to_json(to_public_error(error)))
            return
        self._store_transcript(task, text)
        self._put_event("delta", **fields, delta=text)
        self._put_event("completed", **fields, transcript=text, usage=_usage_to_json(usage))

    async def _generate_transcript(
        self, audio: AudioContent, options: Transcription
    ) -> tuple[str, Usage]:
        text = ""
        request = build_transcription_request(
            audio, options, self._backend.capabilities, self._tenant
        )
        async with aclosing(require_finished(self._backend.respond(request))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    text += event.text
                elif isinstance(event, Finished):
                    return text.strip(), event.usage
        raise AssertionError("require_finished ends with Finished")

    def _put_event(self, suffix: str, **fields: Any) -> None:
        self._sender.put(f"conversation.item.input_audio_transcription.{suffix}", **fields)

    def _find_audio(self, task: _Task) -> AudioContent | None:
        """Return the audio part; None if its item was deleted or its audio dropped meanwhile."""
        item = self._find_item(task)
        part = item.content[task.content_index] if item else None
        return part if isinstance(part, AudioContent) and part.wav else None

    def _find_item(self, task: _Task) -> MessageItem | None:
        item: Item | None = next((i for i in self._conversation if i.id == task.item_id), None)
        return item if isinstance(item, MessageItem) else None

    def _store_transcript(self, task: _Task, text: str) -> None:
        item = self._find_item(task)
        if item is None:
            return
        parts = list(item.content)
        part = parts[task.content_index]
        assert isinstance(part, AudioContent)
        parts[task.content_index] = replace(part, transcript=text)
        self._conversation.replace(replace(item, content=tuple(parts)))


def build_transcription_request(
    audio: AudioContent, options: Transcription, capabilities: Capabilities, tenant: str | None
) -> ChatRequest:
    """Build the thinker's request: the instruction, then the audio, as in training."""
    instruction = TextPart(
        build_transcription_prompt(capabilities, options.language, options.prompt)
    )
    assert audio.wav is not None
    media = MediaPart("audio", (audio.wav,), "input_audio_transcription")
    return ChatRequest(
        id=make_id("asr"),
        messages=(Message("user", (instruction, media)),),
        sampling=SamplingParams(max_tokens=max_transcript_tokens(audio.duration_ms / 1000)),
        needs_speech=True,
        tenant=tenant,
        priority="low",
    )


def _usage_to_json(usage: Usage) -> dict[str, Any]:
    return {
        "type": "tokens",
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
