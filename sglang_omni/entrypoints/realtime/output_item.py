"""The items of one response while they are made: their events in the order that clients rely on."""

from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from sglang_omni.entrypoints.realtime.audio_codec import OutputEncoder, to_base64
from sglang_omni.entrypoints.realtime.conversation import Conversation
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import (
    JSON,
    CallItem,
    Content,
    MessageItem,
    SpeechContent,
    SpokenSegment,
    Status,
    TextContent,
    item_json,
    new_id,
)
from sglang_omni.protocol.tools import ToolCall

Kind = TypeVar("Kind", CallItem, MessageItem)


class OutputItem(Generic[Kind]):
    """Announces an item, and keeps the conversation's copy of it current.

    Without a `conversation` the item belongs to none, and its events there are left out.
    """

    def __init__(
        self,
        outbox: EventSender,
        conversation: Conversation | None,
        response_id: str,
        index: int,
        item: Kind,
    ) -> None:
        """`index` is the item's place in the response."""
        self._outbox, self._conversation = outbox, conversation
        self.item: Kind = item
        self._in_response: JSON = {"response_id": response_id, "output_index": index}

    def _announce(self) -> None:
        item = item_json(self.item)
        self._outbox.put("response.output_item.added", **self._in_response, item=item)
        if self._conversation is not None:
            before = self._conversation.add(self.item)
            self._outbox.put("conversation.item.added", previous_item_id=before, item=item)

    def _complete(self) -> None:
        item = item_json(self.item)
        self._outbox.put("response.output_item.done", **self._in_response, item=item)
        if self._conversation is not None:
            self._conversation.replace(self.item)
            before = self._conversation.before(self.item.id)
            self._outbox.put("conversation.item.done", previous_item_id=before, item=item)


class FunctionCallItem(OutputItem[CallItem]):
    """A call of a function, which is complete when it is known."""

    def __init__(
        self,
        outbox: EventSender,
        conversation: Conversation | None,
        response_id: str,
        index: int,
        call: ToolCall,
    ) -> None:
        item = CallItem(new_id("item"), new_id("call"), call.name, "", "in_progress")
        super().__init__(outbox, conversation, response_id, index, item)
        self._arguments = call.arguments

    def send(self) -> None:
        """Every event of it."""
        place = {**self._in_response, "item_id": self.item.id, "call_id": self.item.call_id}
        self._announce()
        kind = "response.function_call_arguments"
        self._outbox.put(f"{kind}.delta", **place, delta=self._arguments)
        done = {"name": self.item.name, "arguments": self._arguments}
        self._outbox.put(f"{kind}.done", **place, **done)
        self.item = replace(self.item, arguments=self._arguments, status="completed")
        self._complete()


class OutputMessage(OutputItem[MessageItem]):
    """A message with one part."""

    def __init__(
        self, outbox: EventSender, conversation: Conversation | None, response_id: str, index: int
    ) -> None:
        item = MessageItem(new_id("item"), "assistant", (), "in_progress")
        super().__init__(outbox, conversation, response_id, index, item)
        self._place: JSON = {**self._in_response, "item_id": item.id, "content_index": 0}

    def _open(self, part: JSON) -> None:
        self._announce()
        self._outbox.put("response.content_part.added", **self._place, part=part)

    def _close(self, content: Content, part: JSON, status: Status) -> None:
        self.item = replace(self.item, content=(content,), status=status)
        self._outbox.put("response.content_part.done", **self._place, part=part)
        self._complete()


class TextItem(OutputMessage):
    """An answer in text."""

    _text = ""

    def open(self) -> None:
        """Announce the item."""
        self._open({"type": "text", "text": ""})

    def write(self, text: str) -> None:
        """More of the text."""
        self._text += text
        self._outbox.put("response.output_text.delta", **self._place, delta=text)

    def close(self, status: Status) -> None:
        """The text is complete, or was broken off."""
        self._outbox.put("response.output_text.done", **self._place, text=self._text)
        self._close(TextContent(self._text), {"type": "text", "text": self._text}, status)


class AudioItem(OutputMessage):
    """An answer in speech, with the words in step with their sound."""

    def __init__(
        self,
        outbox: EventSender,
        conversation: Conversation | None,
        response_id: str,
        index: int,
        mouth: OutputEncoder,
    ) -> None:
        super().__init__(outbox, conversation, response_id, index)
        self._mouth = mouth
        self._is_finished = False
        self._segments: list[SpokenSegment] = []
        self._duration_ms = 0.0

    def open(self) -> None:
        """Announce the item."""
        self._open({"type": "audio", "transcript": ""})

    def say(self, words: str) -> None:
        """Words whose sound comes next."""
        self._segments.append(SpokenSegment(words, self._mouth.taken_ms))
        self._outbox.put("response.output_audio_transcript.delta", **self._place, delta=words)

    async def sound(self, pcm: np.ndarray) -> None:
        """More sound: float32 [samples]. Raises `EngineFailed` where it is not finite."""
        self._send(await self._mouth.speak(pcm))

    async def finish(self) -> None:
        """No more sound comes: send what is held. Not for an answer that is cut."""
        if not self._is_finished:
            self._is_finished = True
            self._send(await self._mouth.rest())

    def close(self, status: Status, is_cut: bool, heard_ms: float | None) -> None:
        """The speech is complete; or it `is_cut` to what was sent.

        `heard_ms` is how much of that can have been heard, None where nobody spoke over it.
        """
        segments = tuple(self._segments)
        if is_cut:
            self._duration_ms = self._outbox.sent_ms(self.item.id)
            segments = tuple(s for s in segments if s.start_ms <= self._duration_ms)
        speech = SpeechContent(segments, self._duration_ms, heard_ms)
        self._outbox.put("response.output_audio.done", **self._place)
        transcript = speech.transcript
        self._outbox.put(
            "response.output_audio_transcript.done", **self._place, transcript=transcript
        )
        self._close(speech, {"type": "audio", "transcript": transcript}, status)

    def _send(self, data: bytes) -> None:
        if not data:
            return
        duration_ms = self._mouth.wire.milliseconds(len(data))
        self._duration_ms += duration_ms
        delta = {**self._place, "delta": to_base64(data)}
        self._outbox.put_sound(self.item.id, duration_ms, delta)
