"""Items of a response's input as OpenAI shows them."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.response_items import (
    TEXT_PARTS,
    InputPart,
    Item,
    RefusalPart,
    ResponseFunctionCall,
    ResponseFunctionCallOutput,
    ResponseImageCall,
    ResponseMessage,
    ResponseReasoningItem,
)

Json = dict[str, Any]
Order = Literal["asc", "desc"]


def build_input_items(items: Iterable[Item], request_id: str) -> tuple[Json, ...]:
    """Return the objects of a request's items, each with an id.

    Reasoning is left out, for it is not part of the prompt.
    """
    return tuple(
        _build_item(item, f"{request_id}_in{index}")
        for index, item in enumerate(items)
        if not isinstance(item, ResponseReasoningItem)
    )


def _build_item(item: Item, number: str) -> Json:
    common = {"type": item.type, "status": "completed"}
    match item:
        case ResponseMessage(role=role):
            content = [_build_part(part, role) for part in item.content]
            return {"id": item.id or f"msg_{number}", **common, "role": role, "content": content}
        case ResponseFunctionCall(call_id=call_id):
            call = {"call_id": call_id, "name": item.name, "arguments": item.arguments}
            return {"id": item.id or f"fc_{number}", **common, **call}
        case ResponseFunctionCallOutput(call_id=call_id, output=parts):
            output = parts[0].text if len(parts) == 1 else [part.model_dump() for part in parts]
            result = {"call_id": call_id, "output": output}
            return {"id": item.id or f"fco_{number}", **common, **result}
        case ResponseImageCall():
            return {**item.model_dump(exclude_defaults=True), **common, "result": item.result}
    raise AssertionError(f"no object for {item.type}")


def _build_part(part: InputPart, role: str) -> Json:
    if role == "assistant" and isinstance(part, TEXT_PARTS) and not isinstance(part, RefusalPart):
        return {"type": "output_text", "text": part.text, "annotations": []}
    return part.model_dump(exclude_none=True)


def build_item_page(items: Sequence[Json], order: Order, limit: int, after: str | None) -> Json:
    """Return a page of a list of items.

    Args:
        items: All items, the oldest first.
        order: Order of the list: `desc` begins with the newest.
        limit: Maximum number of items of the page.
        after: Id of the item before the page, or None for the first page.

    Raises:
        InvalidRequest: There is no item with the id `after`.
    """
    ordered = items if order == "asc" else items[::-1]
    start = 0 if after is None else _find(ordered, after) + 1
    page = ordered[start : start + limit]
    return {
        "object": "list",
        "data": [*page],
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": start + limit < len(ordered),
    }


def _find(items: Iterable[Json], item_id: str) -> int:
    for index, item in enumerate(items):
        if item["id"] == item_id:
            return index
    raise InvalidRequest(f"after: the list has no item {item_id[:64]!r}", param="after")
