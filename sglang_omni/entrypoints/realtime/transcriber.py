"""The second pass: what the user said, in writing. It runs only while no answer is made."""

import asyncio
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import to_public_error
from sglang_omni.entrypoints.http.responses.cancellable import require_finished
from sglang_omni.entrypoints.realtime.conversation import Conversation
from sglang_omni.entrypoints.realtime.error_event import error_json
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import AudioContent, Item, MessageItem, new_id
from sglang_omni.entrypoints.realtime.session_schema import Transcription
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.pipeline.request import (
    ChatRequest,
    Finished,
    MediaPart,
    Message,
    SamplingParams,
    TextDelta,
    TextPart,
    Usage,
)
from sglang_omni.pipeline.transcribe import token_limit, transcription_prompt


@dataclass(frozen=True)
class _Task:
    """A clip to write down: its place, and how."""

    item_id: str
    content_index: int
    wanted: Transcription


class Transcriber:
    """Writes down one clip after the other, whenever no answer is under way.

    A pass that an answer finds at work is stopped and begun again after the answer, so that no
    answer ever waits for it. A transcript is sent as one delta, when it is complete.
    """

    def __init__(
        self, backend: Backend, conversation: Conversation, outbox: EventSender, tenant: str | None
    ) -> None:
        self._backend, self._conversation, self._outbox = backend, conversation, outbox
        self._tenant = tenant
        self._tasks: deque[_Task] = deque()
        self._work = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._passing: asyncio.Task[None] | None = None

    def add(self, item: MessageItem, wanted: Transcription) -> None:
        """Write down the clips of an item that have no transcript."""
        for index, part in enumerate(item.content):
            if isinstance(part, AudioContent) and part.uri and part.transcript is None:
                self._tasks.append(_Task(item.id, index, wanted))
        if self._tasks:
            self._work.set()

    def hold(self) -> None:
        """An answer begins."""
        self._free.clear()
        if self._passing is not None:
            self._passing.cancel()

    def go(self) -> None:
        """No answer is under way."""
        self._free.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._work.wait()
            await self._free.wait()
            # The queue may have been emptied, and an answer begun, between the two.
            if self._tasks and self._free.is_set():
                await self._pass(self._tasks[0])
            if not self._tasks:
                self._work.clear()

    async def _pass(self, task: _Task) -> None:
        self._passing = asyncio.create_task(self._transcribe(task))
        try:
            await asyncio.wait((self._passing,))
        finally:
            self._passing.cancel()
            await asyncio.wait((self._passing,))
        if not self._passing.cancelled():
            self._tasks.popleft()

    async def _transcribe(self, task: _Task) -> None:
        place = {"item_id": task.item_id, "content_index": task.content_index}
        clip = self._clip(task)
        if clip is None:
            return
        try:
            text, usage = await self._listen(clip, task.wanted)
        except Exception as error:
            self._put("failed", **place, error=error_json(to_public_error(error)))
            return
        self._keep(task, text)
        self._put("delta", **place, delta=text)
        self._put("completed", **place, transcript=text, usage=_usage_json(usage))

    async def _listen(self, clip: AudioContent, wanted: Transcription) -> tuple[str, Usage]:
        text = ""
        request = transcription_request(clip, wanted, self._backend.capabilities, self._tenant)
        async with aclosing(require_finished(self._backend.respond(request))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    text += event.text
                elif isinstance(event, Finished):
                    return text.strip(), event.usage
        raise AssertionError("require_finished ends with Finished")

    def _put(self, kind: str, **fields: Any) -> None:
        self._outbox.put(f"conversation.item.input_audio_transcription.{kind}", **fields)

    def _clip(self, task: _Task) -> AudioContent | None:
        """The clip as it is now: its item may have been deleted, its sound let go."""
        item = self._item(task)
        part = item.content[task.content_index] if item else None
        return part if isinstance(part, AudioContent) and part.uri else None

    def _item(self, task: _Task) -> MessageItem | None:
        found: list[Item] = [item for item in self._conversation if item.id == task.item_id]
        return found[0] if found and isinstance(found[0], MessageItem) else None

    def _keep(self, task: _Task, text: str) -> None:
        item = self._item(task)
        if item is None:
            return
        parts = list(item.content)
        part = parts[task.content_index]
        assert isinstance(part, AudioContent)
        parts[task.content_index] = replace(part, transcript=text)
        self._conversation.replace(replace(item, content=tuple(parts)))


def transcription_request(
    clip: AudioContent, wanted: Transcription, capabilities: Capabilities, tenant: str | None
) -> ChatRequest:
    """What the thinker is asked: the instruction, then the clip, as it was trained."""
    asked = TextPart(transcription_prompt(capabilities, wanted.language, wanted.prompt))
    assert clip.uri is not None
    heard = MediaPart("audio", (clip.uri,), "input_audio_transcription")
    return ChatRequest(
        id=new_id("asr"),
        messages=(Message("user", (asked, heard)),),
        sampling=SamplingParams(max_tokens=token_limit(clip.ms / 1000)),
        needs_speech=True,
        tenant=tenant,
        priority="low",
    )


def _usage_json(usage: Usage) -> dict[str, Any]:
    read, written = usage.prompt_tokens, usage.completion_tokens
    return {
        "type": "tokens",
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
    }
