"""`POST /v1/audio/speech/batch`: several texts read aloud by one request."""

import asyncio
import base64
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from sglang_omni.api.audio import choose_output, require_model
from sglang_omni.api.backend import Backend
from sglang_omni.api.errors import RESPONSES, envelope, public_error
from sglang_omni.api.json_body import JSONRoute
from sglang_omni.api.reply import WholeReply, until_finished
from sglang_omni.api.schema.speech import SpeechOptions, SpokenText
from sglang_omni.api.speaking import spoken
from sglang_omni.api.speech import usage_json
from sglang_omni.api.terms import Terms, owner_of, terms_of
from sglang_omni.errors import InvalidRequest
from sglang_omni.media.encode import media_type
from sglang_omni.pipeline.flow import together
from sglang_omni.pipeline.request import AudioDelta, Usage

MOST_ITEMS = 32
# Of one batch at once: the others may have a share of the talker, too.
AT_ONCE = 4
SPEAKER_FIELDS = frozenset({"voice", "ref_audio", "ref_text"})


class BatchItem(SpeechOptions):
    """A text, and what differs for it from the rest of the batch."""

    input: SpokenText


class BatchBody(SpeechOptions):
    """The body of `POST /v1/audio/speech/batch`: options for all items beside the items."""

    model: str
    items: Annotated[list[BatchItem], Field(min_length=1, max_length=MOST_ITEMS)]


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
    text: str, options: SpeechOptions, backend: Backend, terms: Terms, owner: str | None
) -> dict[str, Any]:
    """One item's audio, whole. Raises what is wrong with it."""
    speech = spoken(text, options, backend, terms, owner)
    output = choose_output(options.response_format, options.sample_rate, backend, options.speed)
    encoder, usage = output.encoder(streaming=False), Usage()
    async with aclosing(until_finished(backend.speak(speech))) as events:
        async for event in events:
            if isinstance(event, AudioDelta):
                await encoder.encode(event.pcm)
            else:
                usage = getattr(event, "usage", usage)
    return {
        "audio": base64.b64encode(await encoder.close()).decode("ascii"),
        "media_type": media_type(options.response_format),
        "sample_rate": output.sample_rate,
        "usage": usage_json(usage),
    }


def routes(backend: Backend) -> APIRouter:
    """The batch route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=JSONRoute)

    @router.post("/v1/audio/speech/batch", responses=RESPONSES)
    async def create_speech_batch(body: BatchBody, request: Request) -> Response:
        """Read up to 32 texts aloud. Each has a status and an audio file, or an error, of its own:
        one that fails does not fail the others."""
        require_model(body.model, backend)
        terms, owner = terms_of(request, body), owner_of(request)
        room = asyncio.Semaphore(AT_ONCE)

        async def attempt(index: int, item: BatchItem) -> dict[str, Any]:
            own = replace(terms, id=f"{terms.id}-{index}")
            try:
                async with room:
                    options = options_of(item, body)
                    made = await speak_item(item.input, options, backend, own, owner)
            except Exception as error:
                known = public_error(error)
                if isinstance(known, InvalidRequest) and known.param:
                    known.param = f"items.{index}.{known.param}"
                return {"index": index, "status": "error", **envelope(known)}
            return {"index": index, "status": "success", **made}

        async def whole() -> Response:
            numbered = enumerate(body.items)
            results = await together(attempt(index, item) for index, item in numbered)
            failed = sum(result["status"] == "error" for result in results)
            counts = {"total": len(results), "succeeded": len(results) - failed, "failed": failed}
            return JSONResponse({"id": f"batch-{terms.id}", **counts, "results": results})

        return WholeReply(whole)

    return router
