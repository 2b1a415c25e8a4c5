"""Model responses, whole or streamed, made from the events of the pipeline."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from sglang_omni.entrypoints.http.errors import to_public_error
from sglang_omni.entrypoints.http.responses.chat_completion import build_invalid_calls
from sglang_omni.entrypoints.http.responses.event_numbering import EventNumbering
from sglang_omni.entrypoints.http.responses.image_call_item import IMAGE_CALL, ImageCallItem
from sglang_omni.entrypoints.http.responses.image_files import (
    FileEvent,
    FinishedFile,
    PreviewFile,
)
from sglang_omni.entrypoints.http.responses.response_items import (
    MESSAGE,
    REASONING,
    ItemPlace,
    OutputCallItem,
    OutputTextItem,
    TextKind,
)
from sglang_omni.entrypoints.http.responses.response_object import (
    ResponseInfo,
    build_error,
    build_usage,
)
from sglang_omni.entrypoints.http.responses.sse import NamedEvent
from sglang_omni.pipeline.image_call import DrawingStarted
from sglang_omni.pipeline.request import (
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCalled,
)
from sglang_omni.protocol.errors import OmniError
from sglang_omni.protocol.tools import ToolCall, ToolCallDelta, ToolCallStart

Json = dict[str, Any]
Events = AsyncGenerator[FileEvent, None]
# Stores a complete response, and returns it as the client gets it.
Keep = Callable[[Json], Awaitable[Json]]


async def build_response(events: Events, info: ResponseInfo, keep: Keep) -> Json:
    """Return the response object. The last event must be `Finished`."""
    writer = ResponseWriter(info)
    async with aclosing(events):
        async for event in events:
            writer.write(event)
            if isinstance(event, Finished):
                return await keep(writer.finish(event))
    raise AssertionError("the events have no end")


async def stream_response(
    events: Events, info: ResponseInfo, keep: Keep
) -> AsyncGenerator[NamedEvent, None]:
    """Yield the events of a response, each as soon as that of the pipeline arrives.

    Nothing is sent before the pipeline's first event, so that an early error can still set the HTTP
    status. A later one becomes `response.failed`.
    """
    writer = ResponseWriter(info)
    try:
        async with aclosing(events):
            async for event in events:
                for written in writer.write(event):
                    yield written
                if isinstance(event, Finished):
                    yield writer.end(await keep(writer.finish(event)))
    except Exception as error:
        if not writer.has_started:
            raise
        for written in writer.fail(to_public_error(error)):
            yield written


class ResponseWriter:
    """Converter of the events of one answer to the items of a response and its events."""

    def __init__(self, info: ResponseInfo) -> None:
        self.has_started = False
        self._info, self._numbering = info, EventNumbering()
        self._output: list[Json] = []
        self._open_item: OutputTextItem | None = None
        self._open_call_item: OutputCallItem | None = None
        self._open_image_item: ImageCallItem | None = None

    def write(self, event: FileEvent) -> list[NamedEvent]:
        """Return the events that tell of `event`, possibly none."""
        opening = [] if self.has_started else self._start()
        match event:
            case TextDelta(text, logprobs) if text or logprobs:
                return [*opening, *self._add_text(MESSAGE, event)]
            case ReasoningDelta(text) if text:
                return [*opening, *self._add_text(REASONING, event)]
            case ToolCallStart(name):
                return [*opening, *self._open_call(name)]
            case ToolCallDelta(text) if self._open_call_item is not None:
                return [*opening, self._open_call_item.add(text)]
            case ToolCalled(call):
                return [*opening, *self._close_call(call)]
            case DrawingStarted(prompt):
                return [*opening, *self._open_image(prompt)]
            case PreviewFile() if self._open_image_item is not None:
                return [*opening, self._open_image_item.show(event)]
            case FinishedFile() if self._open_image_item is not None:
                item, written = self._open_image_item.finish(event)
                return [*opening, *self._add_image(item, written)]
            case Finished():
                return [*opening, *self._close(event)]
        return opening

    def finish(self, finished: Finished) -> Json:
        """Return the whole response, after its last event was written."""
        is_cut = finished.reason == "length"
        return self._info.build(
            "incomplete" if is_cut else "completed",
            self._output,
            incomplete_details={"reason": "max_output_tokens"} if is_cut else None,
            usage=build_usage(finished.usage),
            **build_invalid_calls(finished),
        )

    def end(self, response: Json) -> NamedEvent:
        """Return the last event, with the whole response."""
        return self._numbering.build(f"response.{response['status']}", response=response)

    def fail(self, error: OmniError) -> list[NamedEvent]:
        """Return the last events of a response that failed, with what there is of its output."""
        closing = [*self._cut_call(), *self._fail_image(), *self._close_item("incomplete")]
        response = self._info.build("failed", self._output, error=build_error(error))
        return [*closing, self.end(response)]

    def _start(self) -> list[NamedEvent]:
        self.has_started = True
        response = self._info.build("in_progress", [])
        names = ("response.created", "response.in_progress")
        return [self._numbering.build(name, response=response) for name in names]

    def _open_call(self, name: str) -> list[NamedEvent]:
        closing = self._close_item("completed")
        self._open_call_item = OutputCallItem(name, self._get_next_place(), self._numbering)
        return [*closing, self._open_call_item.open()]

    def _close_call(self, call: ToolCall) -> list[NamedEvent]:
        """Complete a call. One that no grammar holds to its form is known as a whole only."""
        opening: list[NamedEvent] = []
        if self._open_call_item is None:
            opening = self._open_call(call.name)
            assert self._open_call_item is not None
            opening.append(self._open_call_item.add(call.arguments))
        item, written = self._open_call_item.close("completed")
        self._open_call_item = None
        self._output.append(item)
        return [*opening, *written]

    def _open_image(self, prompt: str | None) -> list[NamedEvent]:
        closing = self._close_item("completed")
        self._open_image_item = ImageCallItem(prompt, self._get_next_place(), self._numbering)
        return [*closing, *self._open_image_item.open()]

    def _add_image(self, item: Json, written: list[NamedEvent]) -> list[NamedEvent]:
        self._open_image_item = None
        self._output.append(item)
        return written

    def _fail_image(self) -> list[NamedEvent]:
        """End an image that failed."""
        if self._open_image_item is None:
            return []
        return self._add_image(*self._open_image_item.fail())

    def _cut_call(self) -> list[NamedEvent]:
        """End a call that is incomplete. It is no part of the response: nobody could run it."""
        if self._open_call_item is None:
            return []
        _, written = self._open_call_item.close("incomplete")
        self._open_call_item = None
        return written

    def _add_text(self, kind: TextKind, delta: TextDelta | ReasoningDelta) -> list[NamedEvent]:
        if self._open_item is not None and self._open_item.kind is kind:
            return [self._open_item.add(delta)]
        if self._is_between_calls(delta):
            return []
        opening = [*self._close_item("completed"), *self._open(kind)]
        assert self._open_item is not None
        return [*opening, self._open_item.add(delta)]

    def _is_between_calls(self, delta: TextDelta | ReasoningDelta) -> bool:
        """Return whether a text is the white space behind a call, which is no message."""
        called = ("function_call", IMAGE_CALL)
        has_called = bool(self._output) and self._output[-1]["type"] in called
        return has_called and self._open_item is None and not delta.text.strip()

    def _open(self, kind: TextKind) -> list[NamedEvent]:
        info, place = self._info, self._get_next_place()
        self._open_item = OutputTextItem(kind, place, self._numbering, info.token_text)
        return self._open_item.open()

    def _get_next_place(self) -> ItemPlace:
        return ItemPlace(self._info.request_id, len(self._output))

    def _close_item(self, status: str) -> list[NamedEvent]:
        if self._open_item is None:
            return []
        item, written = self._open_item.close(status)
        self._output.append(item)
        self._open_item = None
        return written

    def _close(self, finished: Finished) -> list[NamedEvent]:
        """Close the open item. An answer without text and calls has an empty message."""
        status = "incomplete" if finished.reason == "length" else "completed"
        closing = [*self._cut_call(), *self._close_item(status)]
        has_answer = any(item["type"] != "reasoning" for item in self._output)
        if has_answer or status == "incomplete":
            return closing
        return [*closing, *self._open(MESSAGE), *self._close_item(status)]
