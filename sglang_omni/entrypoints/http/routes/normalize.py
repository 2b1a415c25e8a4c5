"""The route `POST /v1/audio/normalize`, which shows what will be spoken for a text."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import document_examples
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.requests.metadata import require_model
from sglang_omni.entrypoints.requests.preview import preview_input
from sglang_omni.entrypoints.requests.reading import build_reading
from sglang_omni.models.scripts import find_unspoken_words
from sglang_omni.normalization.preview import SpokenForm
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.compat.speech import NORMALIZE_RULES
from sglang_omni.protocol.speech import NormalizeBody

MAX_UNSPOKEN_WORDS = 100


def normalize(body: NormalizeBody, backend: Backend) -> dict[str, Any]:
    """Return the words of a text.

    Raises:
        InvalidRequest: The text is SSML that is not supported.
        ModelNotFound: Another model is asked for.
    """
    require_model(body.model, backend)
    reading = build_reading(body, backend)
    preview = preview_input(body.input, reading, backend.speech_text.preview)
    languages = backend.capabilities.speech_languages
    return {
        "text": preview.text,
        "readings": [build_reading_object(form) for form in preview.forms],
        "unspoken": find_unspoken_words(preview.text, languages, MAX_UNSPOKEN_WORDS),
    }


def build_reading_object(form: SpokenForm) -> dict[str, str]:
    """Return the object of one written form."""
    return {"written": form.written, "class": form.name, "spoken": form.spoken}


class NormalizeRoute(JSONRoute):
    """The route that shows what will be spoken."""

    field_rules = NORMALIZE_RULES


def create_router(backend: Backend) -> APIRouter:
    """Return the route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=NormalizeRoute)

    @router.post(
        "/v1/audio/normalize",
        responses=RESPONSES,
        openapi_extra=document_examples(
            text={"input": "Meet me at 3:30pm on 5/6/2024."},
            own_words={"input": "Use SQL.", "lexicon": {"SQL": "sequel"}},
        ),
    )
    async def create_preview(body: NormalizeBody) -> JSONResponse:
        """Return what will be spoken for a text or SSML, without speaking it.

        `text` has the words. `readings` lists the written forms that are spoken other than they are
        written, in order: `written`, `class` (such as "date") and `spoken`; it is empty where the
        model's own rules read the text. `unspoken` lists words that the model cannot speak, for
        which `POST /v1/audio/speech` refuses a text.
        """
        return JSONResponse(await run_off_loop(len(body.input), normalize, body, backend))

    return router
