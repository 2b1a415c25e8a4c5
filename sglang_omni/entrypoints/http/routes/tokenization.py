"""The routes `POST /tokenize` and `POST /detokenize`."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import document_examples
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute, get_large_body_size
from sglang_omni.entrypoints.requests.tokenization import detokenize_body, tokenize_body
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.compat.tokenization import DETOKENIZE_RULES, TOKENIZE_RULES
from sglang_omni.protocol.tokenization import DetokenizeBody, TokenizeBody


class TokenizeRoute(JSONRoute):
    """The route that tokenizes."""

    field_rules = TOKENIZE_RULES


class DetokenizeRoute(JSONRoute):
    """The route that decodes tokens."""

    field_rules = DETOKENIZE_RULES


def _build_examples(model: str) -> dict[str, Any]:
    question = {"role": "user", "content": "What is 17 + 25?"}
    return {
        "text": {"model": model, "prompt": "Hello there."},
        "chat": {"model": model, "messages": [question], "return_token_strs": True},
    }


def create_tokenize_router(backend: Backend) -> APIRouter:
    """Return the routes `/tokenize` and `/v1/tokenize`, which are the same."""
    router = APIRouter(tags=["text"], route_class=TokenizeRoute)

    @router.post("/tokenize", include_in_schema=False)
    @router.post(
        "/v1/tokenize",
        responses=RESPONSES,
        openapi_extra=document_examples(**_build_examples(backend.model)),
    )
    async def tokenize(body: TokenizeBody, request: Request) -> JSONResponse:
        """Return the tokens of a text, of several texts, or of the prompt of a chat without media.

        `count` is their number, `max_model_len` the context's length.
        """
        size = get_large_body_size(request)
        return JSONResponse(await tokenize_body(body, backend, request.state.request_id, size))

    return router


def create_detokenize_router(backend: Backend) -> APIRouter:
    """Return the routes `/detokenize` and `/v1/detokenize`, which are the same."""
    router = APIRouter(tags=["text"], route_class=DetokenizeRoute)

    @router.post("/detokenize", include_in_schema=False)
    @router.post(
        "/v1/detokenize",
        responses=RESPONSES,
        openapi_extra=document_examples(tokens={"model": backend.model, "tokens": [40, 41, 42]}),
    )
    async def detokenize(body: DetokenizeBody) -> JSONResponse:
        """Return the text of tokens, as `prompt` and as `text`. Special tokens have their names."""
        return JSONResponse(await run_off_loop(len(body.tokens), detokenize_body, body, backend))

    return router
