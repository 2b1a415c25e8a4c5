"""The item of a drawn image in a response, with the events that tell of it."""

from typing import Any

from sglang_omni.entrypoints.http.responses.event_numbering import EventNumbering
from sglang_omni.entrypoints.http.responses.image_files import FinishedFile, PreviewFile
from sglang_omni.entrypoints.http.responses.response_items import ItemPlace
from sglang_omni.entrypoints.http.responses.sse import NamedEvent

Json = dict[str, Any]
IMAGE_CALL = "image_generation_call"
_EVENT = f"response.{IMAGE_CALL}"


class ImageCallItem:
    """An image while it is drawn."""

    def __init__(self, prompt: str | None, place: ItemPlace, numbering: EventNumbering) -> None:
        self._numbering = numbering
        self._item: Json = {"id": place.make_id("ig"), "type": IMAGE_CALL}
        self._prompt: Json = {} if prompt is None else {"revised_prompt": prompt}
        self._output_index: Json = {"output_index": place.index}
        self._fields: Json = {"item_id": self._item["id"], **self._output_index}

    def open(self) -> list[NamedEvent]:
        """Return the events of its beginning."""
        item = {**self._item, "status": "in_progress", "result": None}
        build = self._numbering.build
        return [
            build("response.output_item.added", **self._output_index, item=item),
            build(f"{_EVENT}.in_progress", **self._fields),
            build(f"{_EVENT}.generating", **self._fields),
        ]

    def show(self, preview: PreviewFile) -> NamedEvent:
        """Return the event of a preview."""
        shown = {"partial_image_index": preview.number, "partial_image_b64": preview.base64}
        described = {**shown, **preview.description}
        return self._numbering.build(f"{_EVENT}.partial_image", **self._fields, **described)

    def finish(self, file: FinishedFile) -> tuple[Json, list[NamedEvent]]:
        """Return the item of a finished image, and the events of its end."""
        drawn = {"result": file.base64, "seed": file.seed, **self._prompt, **file.description}
        completed = self._numbering.build(f"{_EVENT}.completed", **self._fields)
        item, done = self._close("completed", drawn)
        return item, [completed, done]

    def fail(self) -> tuple[Json, list[NamedEvent]]:
        """Return the item of an image that failed, and the event of its end."""
        item, done = self._close("failed", {"result": None})
        return item, [done]

    def _close(self, status: str, fields: Json) -> tuple[Json, NamedEvent]:
        item = {**self._item, "status": status, **fields}
        done = self._numbering.build("response.output_item.done", **self._output_index, item=item)
        return item, done
