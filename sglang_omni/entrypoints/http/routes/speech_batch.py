"""The route `POST /v1/audio/speech/batch`, which reads several texts aloud."""

import asyncio
import base64
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field, ValidationError, WrapValidator

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import choose_output
from sglang_omni.entrypoints.http.errors import RESPONSES, build_envelope, to_public_error
from sglang_omni.entrypoints.http.openapi import document_examples
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata, get_owner
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.http.routes.speech import build_usage
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.speech import build_speech_request
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.media.encode import get_media_type
from sglang_omni.pipeline.async_streams import gather_or_cancel
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import AudioDelta, Usage
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.speech import SpeechOptions, SpokenText

MAX_ITEMS = 32
# Items of one batch in progress at once, so that other requests get a share of the talker.
MAX_CONCURRENT_ITEMS = 4
SPEAKER_FIELDS = frozenset({"voice", "ref_audio", "ref_text"})


class BatchItem(SpeechOptions):
    """A text, and its options where they differ from the batch's."""

    input: SpokenText


# Documented as an item, but validated later by `validate_item`, so that an invalid item does not
# fail the others.
UncheckedItem = Annotated[BatchItem, WrapValidator(lambda value, _: value)]


class BatchBody(SpeechOptions):
    """The body of `POST /v1/audio/speech/batch`: items, and options for all of them."""

    model: str
    items: Annotated[list[UncheckedItem], Field(min_length=1, max_length=MAX_ITEMS)]


def validate_item(value: Any, index: int) -> BatchItem:
    """Validate item `index` of a batch. Raises `InvalidRequest`, naming `items.N.field`."""
    try:
        return BatchItem.model_validate(value)
    except ValidationError as error:
        path = ("body", "items", index)
        problems = [{**detail, "loc": (*path, *detail["loc"])} for detail in error.errors()]
        raise to_invalid_request(problems) from None


@contextmanager
def with_item_path(index: int) -> Iterator[None]:
    """Add the path of item `index` to an error that names a field."""
    try:
        yield
    except InvalidRequest as error:
        if error.param is not None:
            path = f"items.{index}."
            if error.message.startswith(f"{error.param}:"):
                error.message = path + error.message
            error.param = path + error.param
        raise


def merge_options(item: BatchItem, batch: BatchBody) -> SpeechOptions:
    """Return the batch's options, overridden by the item's.

    If the item sets any field of the speaker, the batch's speaker is ignored.
    """
    shared = {name: getattr(batch, name) for name in batch.model_fields_set}
    own = {name: getattr(item, name) for name in item.model_fields_set}
    if SPEAKER_FIELDS & own.keys():
        shared = {name: value for name, value in shared.items() if name not in SPEAKER_FIELDS}
    merged = {**shared, **own}
    fields = SpeechOptions.model_fields.keys()
    return SpeechOptions.model_construct(
        **{name: value for name, value in merged.items() if name in fields}
    )


async def speak_item(
    text: str,
    options: SpeechOptions,
    backend: Backend,
    metadata: RequestMetadata,
    owner: str | None,
) -> dict[str, Any]:
    """Return the complete audio of one item. Raises `OmniError`."""
    # Checking the text of a whole book takes a second.
    speech = await run_off_loop(
        len(text), build_speech_request, text, options, backend, metadata, owner
    )
    output = choose_output(options.response_format, options.sample_rate, backend, options.speed)
    encoder, usage = output.make_encoder(streaming=False), Usage()
    async with aclosing(require_finished(backend.speak(speech))) as events:
        async for event in events:
            if isinstance(event, AudioDelta):
                await encoder.encode(event.pcm)
            else:
                usage = getattr(event, "usage", usage)
    return {
        "audio": base64.b64encode(await encoder.close()).decode("ascii"),
        "media_type": get_media_type(options.response_format),
        "sample_rate": output.sample_rate,
        "usage": build_usage(usage),
    }


def create_router(backend: Backend) -> APIRouter:
    """Return the batch route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=JSONRoute)

    @router.post(
        "/v1/audio/speech/batch",
        responses=RESPONSES,
        openapi_extra=document_examples(
            two_texts={
                "model": backend.model,
                "items": [{"input": "Good morning."}, {"input": "Good night.", "speed": 0.8}],
                "response_format": "mp3",
            }
        ),
    )
    async def create_speech_batch(body: BatchBody, request: Request) -> Response:
        """Read up to 32 texts aloud.

        Each result has its own status and a complete audio file or an error; a failed or invalid
        item does not fail the others.
        """
        require_model(body.model, backend)
        batch_id, owner = build_request_metadata(request, body).id, get_owner(request)
        semaphore = asyncio.Semaphore(MAX_CONCURRENT_ITEMS)

        async def process_item(index: int, value: Any) -> dict[str, Any]:
            try:
                item = validate_item(value, index)
                options = merge_options(item, body)
                metadata = replace(
                    build_request_metadata(request, options), id=f"{batch_id}-{index}"
                )
                async with semaphore:
                    with with_item_path(index):
                        result = await speak_item(item.input, options, backend, metadata, owner)
            except Exception as error:
                return {"index": index, "status": "error", **build_envelope(to_public_error(error))}
            return {"index": index, "status": "success", **result}

        async def make_response() -> Response:
            results = await gather_or_cancel(
                process_item(index, item) for index, item in enumerate(body.items)
            )
            failed = sum(result["status"] == "error" for result in results)
            counts = {"total": len(results), "succeeded": len(results) - failed, "failed": failed}
            return JSONResponse({"id": f"batch-{batch_id}", **counts, "results": results})

        return CancellableResponse(make_response)

    return router
