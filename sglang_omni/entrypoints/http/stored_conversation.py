"""Reads conversations from stored responses."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from sglang_omni.entrypoints.http.response_store import Json, ResponseStore, StoredResponse
from sglang_omni.entrypoints.http.responses.response_object import make_response_id
from sglang_omni.entrypoints.requests.response_messages import ConversationEntry
from sglang_omni.protocol.body import MAX_MESSAGES
from sglang_omni.protocol.errors import InvalidRequest, ItemNotFound, PreviousResponseNotFound
from sglang_omni.protocol.response_items import Item, ResponseImageCall, ResponseItemReference

# Ids that this server gives to items have the id of the request that the item came with.
_ITEM_ID = re.compile(r"[a-z]+_([0-9a-f]{32})_(?:in)?[0-9]+\Z")
_FIELD = "previous_response_id"
_MAX_SHOWN_CHARACTERS = 64
_ITEM_VALIDATOR: TypeAdapter[Item] = TypeAdapter(Annotated[Item, Field(discriminator="type")])


async def read_conversation(
    store: ResponseStore, tenant: str | None, response_id: str | None
) -> list[StoredResponse]:
    """Return the responses up to `response_id`, the oldest first; none for None.

    Raises:
        PreviousResponseNotFound: That response, or one before it, is not stored.
        InvalidRequest: The conversation has too many items.
    """
    found: list[StoredResponse] = []
    num_items = 0
    while response_id is not None:
        stored = await store.get(tenant, response_id)
        if stored is None:
            shown = response_id[:_MAX_SHOWN_CHARACTERS]
            raise PreviousResponseNotFound(
                f"{_FIELD}: the response {shown!r} is unknown, expired, deleted or was not stored",
                param=_FIELD,
            )
        found.append(stored)
        num_items += len(stored.items)
        if num_items > MAX_MESSAGES:
            message = f"{_FIELD}: the conversation has more than {MAX_MESSAGES} items"
            raise InvalidRequest(message, param=_FIELD)
        response_id = stored.previous_id
    return found[::-1]


def list_items(conversation: Sequence[StoredResponse]) -> list[Json]:
    """Return the items of a conversation in order. Reasoning is not part of it."""
    return [item for stored in conversation for item in stored.items if item["type"] != "reasoning"]


async def resolve_references(
    store: ResponseStore, tenant: str | None, items: Sequence[Item | ResponseItemReference]
) -> list[Item]:
    """Return the items of an input, with stored ones for references.

    A drawn image without its content is a reference, too. Raises `ItemNotFound`, naming the field.
    """
    resolved: list[Item] = []
    for index, item in enumerate(items):
        is_drawn = isinstance(item, ResponseImageCall) and item.result is None
        if is_drawn or isinstance(item, ResponseItemReference):
            assert item.id is not None
            resolved.append(await _resolve(store, tenant, item.id, f"input.{index}.id"))
        else:
            resolved.append(item)
    return resolved


async def _resolve(store: ResponseStore, tenant: str | None, item_id: str, path: str) -> Item:
    match = _ITEM_ID.match(item_id)
    stored = await store.get(tenant, make_response_id(match[1])) if match else None
    if stored is not None and item_id in stored.items_by_id:
        return _parse(stored.items_by_id[item_id], path)
    shown = item_id[:_MAX_SHOWN_CHARACTERS]
    raise ItemNotFound(f"{path}: no stored response has the item {shown!r}", param=path)


def build_entries(
    conversation: Sequence[StoredResponse], items: Sequence[Item]
) -> list[ConversationEntry]:
    """Return the items of a conversation and those that follow it, with their fields.

    Raises `InvalidRequest` for an earlier item that a request cannot have.
    """
    earlier = (_parse(item, _FIELD) for item in list_items(conversation))
    return [
        *(ConversationEntry(item, _FIELD, is_earlier=True) for item in earlier),
        *(ConversationEntry(item, f"input.{index}") for index, item in enumerate(items)),
    ]


def _parse(item: Json, path: str) -> Item:
    """Return a stored item. A model may have called a function whose name no request can have."""
    try:
        return _ITEM_VALIDATOR.validate_python(item)
    except ValidationError:
        message = f"{path}: the stored item {item['id']!r} cannot be part of a request"
        raise InvalidRequest(message, param=path) from None
