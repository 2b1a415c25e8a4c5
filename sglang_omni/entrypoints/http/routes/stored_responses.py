"""The routes that read and delete stored responses."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.request_metadata import get_state_tenant
from sglang_omni.entrypoints.http.response_store import ResponseStore, StoredResponse
from sglang_omni.entrypoints.http.responses.input_items import Order, build_item_page
from sglang_omni.entrypoints.http.stored_conversation import list_items, read_conversation
from sglang_omni.protocol.errors import InvalidRequest, ResponseNotFound

MAX_PAGE_ITEMS = 100
_MAX_SHOWN_CHARACTERS = 64


def _make_not_found(response_id: str) -> ResponseNotFound:
    shown = response_id[:_MAX_SHOWN_CHARACTERS]
    return ResponseNotFound(f"no stored response {shown!r}", param="response_id")


async def _find(store: ResponseStore, request: Request, response_id: str) -> StoredResponse:
    """Return a response of the caller. Raises `ResponseNotFound`."""
    stored = await store.get(get_state_tenant(request), response_id)
    if stored is None:
        raise _make_not_found(response_id)
    return stored


def create_router(store: ResponseStore) -> APIRouter:
    """Return the routes of the responses in `store`."""
    router = APIRouter(tags=["responses"])

    @router.get("/v1/responses/{response_id}", responses=RESPONSES)
    async def get_response(
        response_id: str, request: Request, stream: bool = False
    ) -> dict[str, Any]:
        """Return a stored response. Its log probabilities are not stored."""
        if stream:
            message = "stream: a stored response is not streamed again"
            raise InvalidRequest(message, param="stream")
        return (await _find(store, request, response_id)).response

    @router.delete("/v1/responses/{response_id}", responses=RESPONSES)
    async def delete_response(response_id: str, request: Request) -> dict[str, Any]:
        """Delete a stored response. Conversations that went on from it cannot go on."""
        if not await store.delete(get_state_tenant(request), response_id):
            raise _make_not_found(response_id)
        return {"id": response_id, "object": "response", "deleted": True}

    @router.get("/v1/responses/{response_id}/input_items", responses=RESPONSES)
    async def list_input_items(
        response_id: str,
        request: Request,
        order: Order = "desc",
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE_ITEMS)] = 20,
        after: str | None = None,
    ) -> dict[str, Any]:
        """List what a stored response answers: its conversation so far and its own input."""
        stored = await _find(store, request, response_id)
        earlier = await read_conversation(store, get_state_tenant(request), stored.previous_id)
        items = [*list_items(earlier), *stored.input_items]
        return build_item_page(items, order, limit, after)

    @router.post("/v1/responses/{response_id}/cancel", responses=RESPONSES)
    async def cancel_response(response_id: str, request: Request) -> dict[str, Any]:
        """Refuse: only responses in the background can be cancelled, and there are none.

        A client cancels its response by closing the connection.
        """
        await _find(store, request, response_id)
        raise InvalidRequest(
            "the response is complete; only a response in the background can be cancelled",
            param="response_id",
        )

    return router
