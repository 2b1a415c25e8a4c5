"""The route `POST /v1/completions`, which continues texts."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_examples, document_success
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.http.responses.text_chunks import stream_text_completion
from sglang_omni.entrypoints.http.responses.text_completion import (
    CompletionAnswer,
    build_text_completion,
)
from sglang_omni.entrypoints.requests.completions import (
    PromptTokens,
    build_completion_requests,
    encode_prompts,
)
from sglang_omni.entrypoints.requests.metadata import require_model
from sglang_omni.entrypoints.requests.sampling import is_text_fixed
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.compat.completions import COMPLETION_RULES
from sglang_omni.protocol.completions import CompletionBody


def build_completion_answer(
    body: CompletionBody, prompts: Sequence[PromptTokens], backend: Backend, request_id: str
) -> CompletionAnswer:
    """Return the properties of the answer."""
    seed_scope = ("text",) if is_text_fixed(body, backend) else ()
    return CompletionAnswer(
        request_id=request_id,
        model=require_model(body.model, backend),
        prompts=prompts,
        choices_per_prompt=body.n,
        echoes=body.echo,
        shows_answer=body.max_tokens > 0,
        top_logprobs=body.logprobs,
        token_text=backend.decode_token,
        seed_applies_to=None if body.seed is None else seed_scope,
        include_usage=body.stream_options is not None and body.stream_options.include_usage,
    )


def _build_examples(model: str) -> dict[str, Any]:
    text = {"model": model, "prompt": "Once upon a time", "max_tokens": 32}
    return {
        "text": text,
        "streamed": {**text, "stream": True},
        "log_probabilities": {**text, "echo": True, "logprobs": 1, "max_tokens": 1},
    }


class CompletionRoute(JSONRoute):
    """The route of text completions."""

    field_rules = COMPLETION_RULES


def create_router(backend: Backend) -> APIRouter:
    """Return the route of `backend`."""
    router = APIRouter(tags=["text"], route_class=CompletionRoute)

    @router.post(
        "/v1/completions",
        response_class=Response,
        responses=document_success(
            "The continuations, whole or in chunks", "application/json", EVENT_STREAM
        )
        | RESPONSES,
        openapi_extra=document_examples(**_build_examples(backend.model)),
    )
    async def create_completion(body: CompletionBody, request: Request) -> Response:
        """Continue up to 16 texts or lists of token ids, as they are: without a chat template.

        Streamed answers are server-sent events. With `echo` and `logprobs` the answer has the log
        probabilities of the prompts' tokens too.
        """
        metadata = build_request_metadata(request, body)
        size = sum(map(len, body.prompt))
        prompts = await run_off_loop(size, encode_prompts, body, backend)
        answer = build_completion_answer(body, prompts, backend, metadata.id)
        requests = build_completion_requests(body, prompts, metadata)
        choices = [require_finished(backend.respond(choice)) for choice in requests]
        if body.stream:
            return sse.SSEResponse(stream_text_completion(choices, answer), end=sse.DONE)

        async def make_response() -> Response:
            return JSONResponse(await build_text_completion(choices, answer))

        return CancellableResponse(make_response)

    return router
