"""Sends the events of a response's items, in the order that clients rely on."""

from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from sglang_omni.entrypoints.realtime.audio_codec import OutputEncoder, encode_base64
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
    item_to_json,
    make_id,
)

ItemT = TypeVar("ItemT", CallItem, MessageItem)


class OutputItem(Generic[ItemT]):
    """Sends the events of an item and updates the conversation's copy of it.

    Without a `conversation` the item belongs to none, and `conversation.item.*` is not sent.
    """

    def __init__(
        self,
        sender: EventSender,
        conversation: Conversation | None,
        response_id: str,
        index: int,
        item: ItemT,
    ) -> None:
        """Create the item with the output index `index` of the response."""
        self._sender, self._conversation = sender, conversation
        self.item: ItemT = item
        self._response_fields: JSON = {"response_id": response_id, "output_index": index}

    def _send_item_added(self) -> None:
        item = item_to_json(self.item)
        self._sender.put("response.output_item.added", **self._response_fields, item=item)
        if self._conversation is not None:
            previous_id = self._conversation.add(self.item)
            self._sender.put("conversation.item.added", previous_item_id=previous_id, item=item)

    def _send_item_done(self) -> None:
        item = item_to_json(self.item)
        self._sender.put("response.output_item.done", **self._response_fields, item=item)
        if self._conversation is not None:
            self._conversation.replace(self.item)
            previous_id = self._conversation.previous_id(self.item.id)
            self._sender.put("conversation.item.done", previous_item_id=previous_id, item=item)


class FunctionCallItem(OutputItem[CallItem]):
    """A function call."""

    def __init__(
        self,
        sender: EventSender,
        conversation: Conversation | None,
        response_id: str,
        index: int,
        name: str,
    ) -> None:
        item = CallItem(make_id("item"), make_id("call"), name, "", "in_progress")
        super().__init__(sender, conversation, response_id, index, item)
        self._arguments = ""
        ids: JSON = {"item_id": item.id, "call_id": item.call_id}
        self._fields: JSON = {**self._response_fields, **ids}

    def open(self) -> None:
        """Send the events that start the item."""
        self._send_item_added()

    def add_arguments(self, text: str) -> None:
        """Append text of the arguments and send it."""
        self._arguments += text
        self._sender.put("response.function_call_arguments.delta", **self._fields, delta=text)

    def close(self, status: Status) -> None:
        """Send the events that end the item, whether the arguments are complete or not."""
        self._sender.put(
            "response.function_call_arguments.done",
            **self._fields,
            name=self.item.name,
            arguments=self._arguments,
        )
        self.item = replace(self.item, arguments=self._arguments, status=status)
        self._send_item_done()


class OutputMessage(OutputItem[MessageItem]):
    """A message with one content part."""

    def __init__(
        self, sender: EventSender, conversation: Conversation | None, response_id: str, index: int
    ) -> None:
        item = MessageItem(make_id("item"), "assistant", (), "in_progress")
        super().__init__(sender, conversation, response_id, index, item)
        self._part_fields: JSON = {**self._response_fields, "item_id": item.id, "content_index": 0}

    def _open_part(self, part: JSON) -> None:
        self._send_item_added()
        self._sender.put("response.content_part.added", **self._part_fields, part=part)

    def _close_part(self, content: Content, part: JSON, status: Status) -> None:
        self.item = replace(self.item, content=(content,), status=status)
        self._sender.put("response.content_part.done", **self._part_fields, part=part)
        self._send_item_done()


class TextItem(OutputMessage):
    """A message with text."""

    _text = ""

    def open(self) -> None:
        """Send the events that start the item."""
        self._open_part({"type": "text", "text": ""})

    def add_text(self, text: str) -> None:
        """Append text and send it."""
        self._text += text
        self._sender.put("response.output_text.delta", **self._part_fields, delta=text)

    def close(self, status: Status) -> None:
        """Send the events that end the item, whether the text is complete or not."""
        self._sender.put("response.output_text.done", **self._part_fields, text=self._text)
        self._close_part(TextContent(self._text), {"type": "text", "text": self._text}, status)


class AudioItem(OutputMessage):
    """A message with speech and its transcript."""

    def __init__(
        self,
        sender: EventSender,
        conversation: Conversation | None,
        response_id: str,
        index: int,
        encoder: OutputEncoder,
    ) -> None:
        super().__init__(sender, conversation, response_id, index)
        self._encoder = encoder
        self._is_flushed = False
        self._segments: list[SpokenSegment] = []
        self._duration_ms = 0.0

    def open(self) -> None:
        """Send the events that start the item."""
        self._open_part({"type": "audio", "transcript": ""})

    def add_transcript(self, words: str) -> None:
        """Send the transcript of the audio that comes next."""
        self._segments.append(SpokenSegment(words, self._encoder.duration_ms))
        self._send_transcript(words)

    def add_notice(self, notice: JSON) -> None:
        """Send what the client should know of the audio that comes next.

        openai-agents takes an event that is not OpenAI's for an error, but ignores a field.
        """
        self._send_transcript("", notice=notice)

    async def add_audio(self, pcm: np.ndarray) -> None:
        """Send audio, float32 [samples]. Raises `EngineFailed` if a sample is not finite."""
        self._send_audio(await self._encoder.encode(pcm))

    async def flush(self) -> None:
        """Send the audio that the encoder still holds. Do not call it for a cancelled response."""
        if not self._is_flushed:
            self._is_flushed = True
            self._send_audio(await self._encoder.flush())

    def close(self, status: Status, is_truncated: bool, played_ms: float | None) -> None:
        """Send the events that end the item.

        Args:
            status: Status of the item.
            is_truncated: Whether the audio that was not sent yet is discarded.
            played_ms: How much audio can have been played; None if the user did not interrupt.
        """
        segments = tuple(self._segments)
        if is_truncated:
            self._duration_ms = self._sender.sent_ms(self.item.id)
            segments = tuple(s for s in segments if s.start_ms <= self._duration_ms)
        speech = SpeechContent(segments, self._duration_ms, played_ms)
        self._sender.put("response.output_audio.done", **self._part_fields)
        transcript = speech.transcript
        self._sender.put(
            "response.output_audio_transcript.done", **self._part_fields, transcript=transcript
        )
        self._close_part(speech, {"type": "audio", "transcript": transcript}, status)

    def _send_transcript(self, words: str, **more: JSON) -> None:
        event_type = "response.output_audio_transcript.delta"
        self._sender.put(event_type, **self._part_fields, delta=words, **more)

    def _send_audio(self, data: bytes) -> None:
        if not data:
            return
        duration_ms = self._encoder.wire.duration_ms(len(data))
        self._duration_ms += duration_ms
        fields = {**self._part_fields, "delta": encode_base64(data)}
        self._sender.put_audio(self.item.id, duration_ms, fields)
