"""The items of a response's output while they are written, with the events that tell of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sglang_omni.entrypoints.http.responses.event_numbering import EventNumbering
from sglang_omni.entrypoints.http.responses.json_template import JsonTemplate
from sglang_omni.entrypoints.http.responses.sse import NamedEvent
from sglang_omni.entrypoints.http.responses.token_logprobs import build_logprobs
from sglang_omni.entrypoints.requests.token_text import TokenText
from sglang_omni.pipeline.request import ReasoningDelta, TextDelta
from sglang_omni.protocol.tools import ToolCall, build_tool_call

Json = dict[str, Any]


_ARGUMENTS_DELTA = "response.function_call_arguments.delta"


@dataclass(frozen=True)
class TextKind:
    """A kind of text: the answer's, or that of its reasoning.

    Attributes:
        id_prefix: Beginning of the item's id.
        item: The fields of the item besides its id, status and content.
        part_type: Type of its one part; events are named after it.
        part: The fields of the part besides its type and text.
        has_logprobs: Whether the part and its events have log probabilities.
    """

    id_prefix: str
    item: Json
    part_type: str
    part: Json
    has_logprobs: bool


MESSAGE = TextKind(
    id_prefix="msg",
    item={"type": "message", "role": "assistant"},
    part_type="output_text",
    part={"annotations": []},
    has_logprobs=True,
)
REASONING = TextKind(
    id_prefix="rs",
    item={"type": "reasoning", "summary": []},
    part_type="reasoning_text",
    part={},
    has_logprobs=False,
)


@dataclass(frozen=True)
class ItemPlace:
    """Where an item is: in the response of which request, and behind how many others."""

    request_id: str
    index: int

    def make_id(self, prefix: str) -> str:
        """Return the id of the item."""
        return f"{prefix}_{self.request_id}_{self.index}"


class OutputTextItem:
    """An item with one text that grows."""

    def __init__(
        self,
        kind: TextKind,
        place: ItemPlace,
        numbering: EventNumbering,
        token_text: TokenText | None,
    ) -> None:
        self.kind = kind
        self._numbering, self._token_text = numbering, token_text
        self._texts: list[str] = []
        self._logprobs: list[Json] = []
        self._id = place.make_id(kind.id_prefix)
        self._item_fields: Json = {"output_index": place.index}
        self._part_fields: Json = {"item_id": self._id, **self._item_fields, "content_index": 0}
        self._delta_name = f"response.{kind.part_type}.delta"
        self._template = JsonTemplate(
            lambda text: {"type": self._delta_name, **self._build_delta(text, [])}
        )

    def open(self) -> list[NamedEvent]:
        """Return the events of its beginning."""
        item, part = self._build_item("in_progress", []), self._build_part("", [])
        build = self._numbering.build
        return [
            build("response.output_item.added", **self._item_fields, item=item),
            build("response.content_part.added", **self._part_fields, part=part),
        ]

    def add(self, delta: TextDelta | ReasoningDelta) -> NamedEvent:
        """Return the event of more text."""
        self._texts.append(delta.text)
        if self._token_text is None or not isinstance(delta, TextDelta):
            return self._numbering.complete(self._delta_name, self._template.fill(delta.text))
        logprobs: list[Json] = build_logprobs(delta.logprobs, self._token_text)["content"]
        self._logprobs += logprobs
        return self._numbering.build(self._delta_name, **self._build_delta(delta.text, logprobs))

    def close(self, status: str) -> tuple[Json, list[NamedEvent]]:
        """Return the item, and the events of its end."""
        text = "".join(self._texts)
        part = self._build_part(text, self._logprobs)
        item = self._build_item(status, [part])
        name, fields = f"response.{self.kind.part_type}.done", self._part_fields
        build = self._numbering.build
        return item, [
            build(name, **fields, text=text, **self._build_logprobs(self._logprobs)),
            build("response.content_part.done", **fields, part=part),
            build("response.output_item.done", **self._item_fields, item=item),
        ]

    def _build_item(self, status: str, content: list[Json]) -> Json:
        return {"id": self._id, **self.kind.item, "status": status, "content": content}

    def _build_part(self, text: str, logprobs: Sequence[Json]) -> Json:
        part = {"type": self.kind.part_type, "text": text, **self.kind.part}
        return {**part, **self._build_logprobs(logprobs)}

    def _build_delta(self, text: str, logprobs: Sequence[Json]) -> Json:
        return {**self._part_fields, "delta": text, **self._build_logprobs(logprobs)}

    def _build_logprobs(self, logprobs: Sequence[Json]) -> Json:
        return {"logprobs": [*logprobs]} if self.kind.has_logprobs else {}


class OutputCallItem:
    """A call of a function whose arguments grow."""

    def __init__(self, name: str, place: ItemPlace, numbering: EventNumbering) -> None:
        self._numbering = numbering
        self._arguments: list[str] = []
        self._item_fields: Json = {"output_index": place.index}
        item_id, call_id = place.make_id("fc"), build_tool_call(ToolCall(name, ""))["id"]
        self._common: Json = {"id": item_id, "type": "function_call", "call_id": call_id}
        self._common["name"] = name
        self._fields: Json = {"item_id": item_id, **self._item_fields}
        self._template = JsonTemplate(lambda text: {"type": _ARGUMENTS_DELTA, **self._delta(text)})

    def open(self) -> NamedEvent:
        """Return the event of its beginning."""
        item = {**self._common, "status": "in_progress", "arguments": ""}
        return self._numbering.build("response.output_item.added", **self._item_fields, item=item)

    def add(self, text: str) -> NamedEvent:
        """Return the event of more of the arguments."""
        self._arguments.append(text)
        return self._numbering.complete(_ARGUMENTS_DELTA, self._template.fill(text))

    def close(self, status: str) -> tuple[Json, list[NamedEvent]]:
        """Return the item, and the events of its end."""
        arguments = "".join(self._arguments)
        item = {**self._common, "status": status, "arguments": arguments}
        done = {"name": self._common["name"], "arguments": arguments}
        build = self._numbering.build
        return item, [
            build("response.function_call_arguments.done", **self._fields, **done),
            build("response.output_item.done", **self._item_fields, item=item),
        ]

    def _delta(self, text: str) -> Json:
        return {**self._fields, "delta": text}
