"""The route `POST /v1/responses`."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_examples, document_success
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute, get_large_body_size
from sglang_omni.entrypoints.http.request_metadata import (
    build_request_metadata,
    get_state_tenant,
)
from sglang_omni.entrypoints.http.response_store import (
    Json,
    ResponseStore,
    StoredResponse,
    build_stored_response,
)
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.http.responses.image_files import FileEvents, ImageEncoder
from sglang_omni.entrypoints.http.responses.input_items import build_input_items
from sglang_omni.entrypoints.http.responses.response_events import (
    Keep,
    build_response,
    stream_response,
)
from sglang_omni.entrypoints.http.responses.response_object import ResponseInfo, build_settings
from sglang_omni.entrypoints.http.responses.sse import NamedSSEResponse
from sglang_omni.entrypoints.http.stored_conversation import (
    build_entries,
    read_conversation,
    resolve_references,
)
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.responses import PreparedRequest, prepare_request
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.image_call import answer_with_call, draw_called_images
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.compat.responses import CREATE_RESPONSE_RULES
from sglang_omni.protocol.response_items import Item
from sglang_omni.protocol.responses import IMAGE_TOOL, CreateResponseBody

# A red square, so that the example needs no other host.
_RED_SQUARE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7h"
    "IASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC"
)


def _build_examples(model: str, *, draws_images: bool) -> dict[str, Any]:
    text = {"model": model, "input": "What is 17 + 25?", "max_output_tokens": 64}
    question = {"type": "input_text", "text": "What is in the image?"}
    image = {"type": "input_image", "image_url": _RED_SQUARE}
    tool = {
        "type": "function",
        "name": "get_weather",
        "description": "Return the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    drawn = {
        "model": model,
        "input": "A mill by the river",
        "tools": [{"type": IMAGE_TOOL, "size": "512x512"}],
        "tool_choice": {"type": IMAGE_TOOL},
    }
    return {
        "text": text,
        **({"drawn_image": drawn} if draws_images else {}),
        "streamed": {**text, "stream": True},
        "image": {**text, "input": [{"role": "user", "content": [question, image]}]},
        "function": {**text, "input": "How is the weather in Rome?", "tools": [tool]},
    }


@dataclass(frozen=True)
class _Prepared:
    """What makes a response.

    Attributes:
        request: The request of the pipeline.
        info: The properties of the response.
        input_items: The items to store with it, or None if it is not to be stored.
        size_bytes: Size of the request's body if it is large, else 0.
    """

    request: PreparedRequest
    info: ResponseInfo
    input_items: tuple[Json, ...] | None
    size_bytes: int


def _prepare(
    body: CreateResponseBody,
    conversation: Sequence[StoredResponse],
    items: Sequence[Item],
    backend: Backend,
    metadata: RequestMetadata,
    size_bytes: int,
) -> _Prepared:
    request = prepare_request(body, build_entries(conversation, items), backend, metadata)
    settings = build_settings(body, metadata.id, require_model(body.model, backend))
    token_text = backend.decode_token if body.wants_logprobs else None
    info = ResponseInfo(metadata.id, settings, token_text)
    input_items = build_input_items(items, metadata.id) if body.store else None
    return _Prepared(request, info, input_items, size_bytes)


def _make_keep(store: ResponseStore, tenant: str | None, prepared: _Prepared) -> Keep:
    """Return the function that stores a response, if the request wants that."""
    input_items, size_bytes = prepared.input_items, prepared.size_bytes

    async def keep(response: Json) -> Json:
        if input_items is None:
            return response
        stored = await run_off_loop(size_bytes, build_stored_response, response, input_items)
        is_stored = await store.put(tenant, stored)
        return response if is_stored else {**response, "store": False}

    return keep


def start_answer(request: PreparedRequest, backend: Backend) -> FileEvents:
    """Return the events of an answer, with files in place of images."""
    images = request.images
    if images is None:
        answer: FileEvents = require_finished(backend.respond(request.chat))
        return request.field_names.in_errors_of(answer)
    image_names = images.use.field_names

    def draw(image: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        return image_names.in_errors_of(backend.draw(image))

    if images.image is not None:
        events = answer_with_call(images.image, draw)
    else:
        assert images.called is not None
        said = request.field_names.in_errors_of(require_finished(backend.respond(request.chat)))
        events = draw_called_images(said, images.called, draw)
    return ImageEncoder(images.use.tool).encode_events(events)


class ResponseRoute(JSONRoute):
    """The route that makes responses."""

    field_rules = CREATE_RESPONSE_RULES


def create_router(backend: Backend, store: ResponseStore) -> APIRouter:
    """Return the route that makes responses with `backend` and keeps them in `store`."""
    router = APIRouter(tags=["responses"], route_class=ResponseRoute)
    examples = _build_examples(backend.model, draws_images=backend.capabilities.image_output)

    @router.post(
        "/v1/responses",
        response_class=Response,
        responses=document_success(
            "The response, whole or as events", "application/json", EVENT_STREAM
        )
        | RESPONSES,
        openapi_extra=document_examples(**examples),
    )
    async def create_response(body: CreateResponseBody, request: Request) -> Response:
        """Answer text, images and audio with text, calls of functions or images, as OpenAI does.

        Streamed answers are server-sent events with names. A stored response can be read again, and
        `previous_response_id` goes on from it.
        """
        metadata = build_request_metadata(request, body)
        tenant, size = get_state_tenant(request), get_large_body_size(request)
        conversation = await read_conversation(store, tenant, body.previous_response_id)
        items = await resolve_references(store, tenant, body.input)
        # Converting a large body takes about as long as parsing it, so it runs in a thread too.
        work = size + sum(stored.size_bytes for stored in conversation)
        prepared = await run_off_loop(
            work, _prepare, body, conversation, items, backend, metadata, size
        )
        keep = _make_keep(store, tenant, prepared)
        events = start_answer(prepared.request, backend)
        if body.stream:
            return NamedSSEResponse(stream_response(events, prepared.info, keep))

        async def make_response() -> Response:
            return JSONResponse(await build_response(events, prepared.info, keep))

        return CancellableResponse(make_response)

    return router
