"""The route `POST /v1/audio/speech/batch`, which reads several texts aloud."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field, ValidationError, WrapValidator

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import choose_output
from sglang_omni.entrypoints.http.complete_speech import collect_speech
from sglang_omni.entrypoints.http.errors import RESPONSES, build_envelope, to_public_error
from sglang_omni.entrypoints.http.openapi import document_examples
from sglang_omni.entrypoints.http.request_body.ignored_fields import note_ignored_fields
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata, get_owner
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.http.routes.speech import (
    drop_ignored_style,
    drop_ignored_turn_styles,
)
from sglang_omni.entrypoints.requests.error_path import with_error_path
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.speech import build_speech_request, count_characters
from sglang_omni.entrypoints.requests.speech_options import merge_options
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.pipeline.async_streams import gather_or_cancel
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.body import ModelName
from sglang_omni.protocol.compat.adapt import adapt
from sglang_omni.protocol.compat.speech import BATCH_RULES, ITEM_RULES
from sglang_omni.protocol.speech import SpeechOptions, SpokenInput, TurnBody

MAX_ITEMS = 32
# Items of one batch in progress at once, so that other requests get a share of the talker.
MAX_CONCURRENT_ITEMS = 4


class BatchItem(SpeechOptions):
    """A text, and its options where they differ from the batch's."""

    input: SpokenInput


# Documented as an item, but validated later by `validate_item`, so that an invalid item does not
# fail the others.
UncheckedItem = Annotated[BatchItem, WrapValidator(lambda value, _: value)]


class BatchBody(SpeechOptions):
    """The body of `POST /v1/audio/speech/batch`: items, and options for all of them."""

    model: ModelName = None
    items: Annotated[list[UncheckedItem], Field(min_length=1, max_length=MAX_ITEMS)]


# Items are converted one by one, but an error names the path from the batch on.
_NESTED_RULES = replace(BATCH_RULES, nested={"items": ITEM_RULES})


def adapt_item(value: Any, index: int, request: Request) -> Any:
    """Convert the fields of item `index`. Raises `InvalidRequest`, naming `items.N.field`."""
    with with_error_path(f"items.{index}.".__add__):
        adapted = adapt(ITEM_RULES, value)
    note_ignored_fields(request, (f"items.{name}" for name in adapted.ignored))
    return adapted.fields


def validate_item(value: Any, index: int) -> BatchItem:
    """Validate item `index` of a batch. Raises `InvalidRequest`, naming `items.N.field`."""
    try:
        return BatchItem.model_validate(value)
    except ValidationError as error:
        path = ("body", "items", index)
        problems = [{**detail, "loc": (*path, *detail["loc"])} for detail in error.errors()]
        raise to_invalid_request(problems, _NESTED_RULES) from None


async def speak_item(
    spoken: str | Sequence[TurnBody],
    options: SpeechOptions,
    backend: Backend,
    metadata: RequestMetadata,
    owner: str | None,
) -> dict[str, Any]:
    """Return the complete audio of one item. Raises `OmniError`."""
    # Checking the text of a whole book takes a second.
    speech = await run_off_loop(
        count_characters(spoken), build_speech_request, spoken, options, backend, metadata, owner
    )
    output = choose_output(options.response_format, options.sample_rate, backend, options.speed)
    complete = await collect_speech(require_finished(backend.speak(speech)), output)
    times = {} if speech.timestamps == "none" else complete.describe_times()
    return {**complete.describe_file(), **times}


class BatchRoute(JSONRoute):
    """The route of batches of speech."""

    field_rules = BATCH_RULES


def create_router(backend: Backend) -> APIRouter:
    """Return the batch route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=BatchRoute)

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
                item = validate_item(adapt_item(value, index, request), index)
                spoken = drop_ignored_turn_styles(item.input, backend, request)
                options = drop_ignored_style(merge_options(item, body), backend, request)
                metadata = replace(
                    build_request_metadata(request, options), id=f"{batch_id}-{index}"
                )
                async with semaphore:
                    with with_error_path(f"items.{index}.".__add__):
                        result = await speak_item(spoken, options, backend, metadata, owner)
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
