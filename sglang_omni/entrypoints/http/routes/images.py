"""The routes that draw: `POST /v1/images/generations` and `/v1/images/edits`, and their files."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.image_store import ImageStore
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_examples, document_success
from sglang_omni.entrypoints.http.paths import IMAGE_FILES_PREFIX
from sglang_omni.entrypoints.http.request_body.form import document_form, read_files_form
from sglang_omni.entrypoints.http.request_body.json_route import (
    JSON_TYPE,
    Handler,
    JSONRoute,
    get_media_type,
    read_json,
)
from sglang_omni.entrypoints.http.request_body.reader import FORM_TYPE
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.http.responses.images import (
    ImageAnswer,
    ImageEvents,
    collect_images,
    stream_images,
)
from sglang_omni.entrypoints.requests.images import build_image_request
from sglang_omni.media.image_file import get_image_media_type
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.compat.images import EDIT_RULES, GENERATION_RULES
from sglang_omni.protocol.errors import ImageNotFound
from sglang_omni.protocol.images import (
    MAX_REFERENCES,
    ImageEditBody,
    ImageEditForm,
    ImageFields,
    ImageFileFormat,
    ImageGenerationBody,
)

# OpenAI's clients send one image as `image` and several as `image[]`.
FILE_FIELDS = ("image", "image[]")
IMAGES_PREFIX = "/v1/images/"
_ANSWER = document_success("The images", "application/json", EVENT_STREAM)
# What the server stores never changes, and its name is a secret.
_FILE_HEADERS = {"Cache-Control": "private, immutable"}


def _build_examples(model: str) -> dict[str, Any]:
    drawing = {"model": model, "prompt": "A mill by the river, in watercolours"}
    return {
        "square": {**drawing, "size": "1024x1024"},
        "wide": {**drawing, "aspect_ratio": "16:9", "resolution": 512, "seed": 7, "steps": 20},
        "url": {**drawing, "response_format": "url", "output_format": "webp"},
        "events": {**drawing, "stream": True, "partial_images": 2},
    }


def create_route_class(backend: Backend) -> type[JSONRoute]:
    """Return the class of the route of images.

    A server that draws none says so whatever the body is, so it converts no fields before.
    """

    class GenerationRoute(JSONRoute):
        """The route of images."""

        field_rules = GENERATION_RULES

        def get_route_handler(self) -> Handler:
            """Return a handler that reads the body of a server that draws."""
            handle = super().get_route_handler()

            async def handle_drawing(request: Request) -> Response:
                backend.require_images()
                return await handle(request)

            return handle_drawing

    return GenerationRoute


class ImageResponder:
    """Draws images with a backend, and answers with them."""

    def __init__(self, backend: Backend, store: ImageStore) -> None:
        self._backend, self._store = backend, store

    def start_response(
        self, request: Request, body: ImageFields, references: Sequence[MediaPart], kind: str
    ) -> Response:
        """Start to draw, and return the response in the requested form."""
        metadata = build_request_metadata(request, body)
        drawing = build_image_request(body, references, self._backend, metadata)
        events = self._backend.draw(drawing)
        answer = ImageAnswer(body, partial(self._store_file, request))
        if body.stream:
            return sse.NamedSSEResponse(stream_images(events, answer, kind))
        return CancellableResponse(partial(_respond, events, answer))

    async def _store_file(self, request: Request, data: bytes, file_type: ImageFileFormat) -> str:
        """Return the URL of a file, at the address that the client knows the server by."""
        name = await self._store.add(data, file_type)
        return f"{str(request.base_url).rstrip('/')}{IMAGE_FILES_PREFIX}{name}"


async def _respond(events: ImageEvents, answer: ImageAnswer) -> Response:
    return Response(await collect_images(events, answer), media_type=JSON_TYPE)


async def read_edit(request: Request) -> tuple[ImageFields, list[MediaPart]]:
    """Return the fields of an edit and its images, from a form or from JSON.

    Raises `InvalidRequest`, naming the field.
    """
    if get_media_type(request.headers) == FORM_TYPE:
        form, files = await read_files_form(
            request, ImageEditForm, FILE_FIELDS, EDIT_RULES, max_files=MAX_REFERENCES
        )
        return form, [MediaPart("image", (file,), FILE_FIELDS[0]) for file in files]
    body = await read_json(request, ImageEditBody, EDIT_RULES)
    return body, [
        MediaPart("image", (source,), f"images.{index}") for index, source in enumerate(body.images)
    ]


def _document_edit(model: str) -> dict[str, Any]:
    form = document_form(ImageEditForm, FILE_FIELDS[0], {"model": model})
    edit = {"model": model, "prompt": "Make it winter", "images": ["https://example.org/mill.png"]}
    examples = document_examples(url=edit, wide={**edit, "aspect_ratio": "16:9", "seed": 7})
    json_content = examples["requestBody"]["content"]["application/json"]
    form["requestBody"]["content"]["application/json"] = {
        "schema": ImageEditBody.model_json_schema(),
        **json_content,
    }
    return form


def create_router(backend: Backend, store: ImageStore) -> APIRouter:
    """Return the image routes of `backend`.

    `store` keeps images that are fetched by URL. Where the backend draws none, the routes say so,
    and the documentation leaves them out.
    """
    responder = ImageResponder(backend, store)
    router = APIRouter(tags=["images"], include_in_schema=backend.capabilities.image_output)
    router.include_router(_create_generation_router(backend, responder))

    @router.post(
        "/v1/images/edits",
        response_class=Response,
        responses=_ANSWER | RESPONSES,
        openapi_extra=_document_edit(backend.model),
    )
    async def edit_image(request: Request) -> Response:
        """Draw an image anew as a prompt says. The body is a form with files, or JSON with URLs.

        The first image is edited and gives the result its ratio, unless `size` or `aspect_ratio`
        does. The model sees the other images, too. The answer is that of `/v1/images/generations`.
        """
        backend.require_images()
        body, references = await read_edit(request)
        return responder.start_response(request, body, references, "image_edit")

    @router.get(f"{IMAGE_FILES_PREFIX}{{name}}", response_class=Response, responses=RESPONSES)
    async def fetch_image(name: str) -> Response:
        """Return an image that was asked for as a URL, until it expires. It needs no key."""
        backend.require_images()
        stored = await store.get(name)
        if stored is None:
            raise ImageNotFound("no such image, or its URL has expired")
        return Response(
            stored.data, media_type=get_image_media_type(stored.file_type), headers=_FILE_HEADERS
        )

    if not backend.capabilities.image_output:
        router.include_router(_create_refusing_router(backend))
    return router


def _create_refusing_router(backend: Backend) -> APIRouter:
    """Return a router that refuses what else clients ask a server for that draws no images."""
    router = APIRouter()

    @router.api_route(f"{IMAGES_PREFIX}{{name:path}}", methods=["GET", "POST", "DELETE"])
    async def answer_without_images() -> Response:
        """Say that the server draws no images."""
        backend.require_images()
        raise HTTPException(404, "Not Found")

    return router


def _create_generation_router(backend: Backend, responder: ImageResponder) -> APIRouter:
    router = APIRouter(route_class=create_route_class(backend))

    @router.post(
        "/v1/images/generations",
        response_class=Response,
        responses=_ANSWER | RESPONSES,
        openapi_extra=document_examples(**_build_examples(backend.model)),
    )
    async def generate_image(body: ImageGenerationBody, request: Request) -> Response:
        """Draw images from a prompt.

        Text in quotation marks is written into the image. Each image has a `seed`, which draws it
        again. Streamed answers are server-sent events: `image_generation.partial_image` as often as
        `partial_images` says, and `image_generation.completed`. A file says in its metadata that it
        was generated. A server whose checkpoint draws no images answers 404 `images_unavailable`.
        """
        return responder.start_response(request, body, (), "image_generation")

    return router
