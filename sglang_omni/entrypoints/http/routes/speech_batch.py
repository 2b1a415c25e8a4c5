"""`POST /v1/audio/speech/batch`: several texts read aloud by one request."""

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
from sglang_omni.entrypoints.http.audio_output import choose_output, require_model
from sglang_omni.entrypoints.http.errors import (
    RESPONSES,
    build_envelope,
    to_invalid_request,
    to_public_error,
)
from sglang_omni.entrypoints.http.openapi import examples
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.http.request_metadata import RequestMetadata, owner_of, terms_of
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse, require_finished
from sglang_omni.entrypoints.http.routes.speech import usage_json
from sglang_omni.entrypoints.http.speech_options import build_speech_request
from sglang_omni.entrypoints.work_threads import run_off_loop
from sglang_omni.media.encode import get_media_type
from sglang_omni.pipeline.async_streams import gather_or_cancel
from sglang_omni.pipeline.request import AudioDelta, Usage
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.speech import SpeechOptions, SpokenText

MOST_ITEMS = 32
# Of one batch at once: the others may have a share of the talker, too.
AT_ONCE = 4
SPEAKER_FIELDS = frozenset({"voice", "ref_audio", "ref_text"})


class BatchItem(SpeechOptions):
    """A text, and what differs for it from the rest of the batch."""

    input: SpokenText


# Documented as an item and left as it came, for `read_item` to validate: one that is invalid must
# not refuse the others.
UncheckedItem = Annotated[BatchItem, WrapValidator(lambda value, _: value)]


class BatchBody(SpeechOptions):
    """The body of `POST /v1/audio/speech/batch`: options for all items beside the items."""

    model: str
    items: Annotated[list[UncheckedItem], Field(min_length=1, max_length=MOST_ITEMS)]


def read_item(value: Any, index: int) -> BatchItem:
    """Validate item `index` of a batch. Raises `InvalidRequest`, naming `items.N.field`."""
    try:
        return BatchItem.model_validate(value)
    except ValidationError as error:
        place = ("body", "items", index)
        problems = [{**one, "loc": (*place, *one["loc"])} for one in error.errors()]
        raise to_invalid_request(problems) from None


@contextmanager
def naming_item(index: int) -> Iterator[None]:
    """Let an error that names an option name the item of the batch that has it, too."""
    try:
        yield
    except InvalidRequest as error:
        if error.param is not None:
            place = f"items.{index}."
            if error.message.startswith(f"{error.param}:"):
                error.message = place + error.message
            error.param = place + error.param
        raise


def options_of(item: BatchItem, batch: BatchBody) -> SpeechOptions:
    """The item's own options over those of the batch. A speaker is not mixed from both."""
    shared = {name: getattr(batch, name) for name in batch.model_fields_set}
    own = {name: getattr(item, name) for name in item.model_fields_set}
    if SPEAKER_FIELDS & own.keys():
        shared = {name: value for name, value in shared.items() if name not in SPEAKER_FIELDS}
    merged = {**shared, **own}
    known = SpeechOptions.model_fields.keys()
    return SpeechOptions.model_construct(
        **{name: value for name, value in merged.items() if name in known}
    )


async def speak_item(
    text: str, options: SpeechOptions, backend: Backend, terms: RequestMetadata, owner: str | None
) -> dict[str, Any]:
    """One item's audio, whole. Raises what is wrong with it."""
    # A book takes a second to look through.
    speech = await run_off_loop(
        len(text), build_speech_request, text, options, backend, terms, owner
    )
    output = choose_output(options.response_format, options.sample_rate, backend, options.speed)
    encoder, usage = output.encoder(streaming=False), Usage()
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
        "usage": usage_json(usage),
    }


def routes(backend: Backend) -> APIRouter:
    """The batch route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=JSONRoute)

    @router.post(
        "/v1/audio/speech/batch",
        responses=RESPONSES,
        openapi_extra=examples(
            two_texts={
                "model": backend.model,
                "items": [{"input": "Good morning."}, {"input": "Good night.", "speed": 0.8}],
                "response_format": "mp3",
            }
        ),
    )
    async def create_speech_batch(body: BatchBody, request: Request) -> Response:
        """Read up to 32 texts aloud. Each has a status and a complete audio file, or an error, of
        its own: one that fails, or is invalid, does not fail the others."""
        require_model(body.model, backend)
        batch_id, owner = terms_of(request, body).id, owner_of(request)
        room = asyncio.Semaphore(AT_ONCE)

        async def attempt(index: int, value: Any) -> dict[str, Any]:
            try:
                item = read_item(value, index)
                options = options_of(item, body)
                terms = replace(terms_of(request, options), id=f"{batch_id}-{index}")
                async with room:
                    with naming_item(index):
                        made = await speak_item(item.input, options, backend, terms, owner)
            except Exception as error:
                return {"index": index, "status": "error", **build_envelope(to_public_error(error))}
            return {"index": index, "status": "success", **made}

        async def whole() -> Response:
            numbered = enumerate(body.items)
            results = await gather_or_cancel(attempt(index, item) for index, item in numbered)
            failed = sum(result["status"] == "error" for result in results)
            counts = {"total": len(results), "succeeded": len(results) - failed, "failed": failed}
            return JSONResponse({"id": f"batch-{batch_id}", **counts, "results": results})

        return CancellableResponse(whole)

    return router
