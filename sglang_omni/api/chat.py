"""`POST /v1/chat/completions`."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from sglang_omni.api import sse
from sglang_omni.api.audio import AudioOutput, choose_output, choose_speaker, require_model
from sglang_omni.api.backend import Backend
from sglang_omni.api.completion import Answer, chunks, complete
from sglang_omni.api.content import to_messages
from sglang_omni.api.errors import RESPONSES
from sglang_omni.api.reply import StreamedReply, WholeReply, until_finished
from sglang_omni.api.schema import ChatAudio, ChatBody
from sglang_omni.api.terms import Terms, owner_of, terms_of
from sglang_omni.errors import InvalidRequest
from sglang_omni.pipeline.request import ChatRequest, SamplingParams, Voice


def check(body: ChatBody, backend: Backend) -> None:
    """Refuse what no single field shows to be wrong. Raises `InvalidRequest`."""
    require_model(body.model, backend)
    if body.messages[-1].role != "user":
        raise InvalidRequest("messages: the last message must be the user's", param="messages")
    if len(set(body.modalities)) < len(body.modalities):
        raise InvalidRequest("modalities: each may be named once", param="modalities")
    if body.audio is not None and not body.wants_audio:
        raise InvalidRequest("audio: needs 'audio' among the modalities", param="audio")
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest("stream_options: needs stream=true", param="stream_options")


def token_limit(body: ChatBody, backend: Backend) -> int:
    """The most tokens to generate. Raises `InvalidRequest` where the body's two names disagree,
    or ask for more than the server allows."""
    asked = {
        name: value
        for name in ("max_tokens", "max_completion_tokens")
        if (value := getattr(body, name)) is not None
    }
    if len(set(asked.values())) > 1:
        raise InvalidRequest(
            "max_tokens: differs from max_completion_tokens, its newer name", param="max_tokens"
        )
    for name, value in asked.items():
        if value > backend.max_tokens:
            raise InvalidRequest(f"{name}: must be at most {backend.max_tokens}", param=name)
    usual = min(SamplingParams.max_tokens, backend.max_tokens)
    return next(iter(asked.values()), usual)


def to_sampling(body: ChatBody, backend: Backend) -> SamplingParams:
    """How the thinker shall sample. Raises `InvalidRequest` for the token limit."""
    return SamplingParams(
        max_tokens=token_limit(body, backend),
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        min_p=body.min_p,
        repetition_penalty=body.repetition_penalty,
        stop=tuple(body.stop),
        seed=body.seed,
    )


def to_voice(body: ChatBody, backend: Backend, owner: str | None) -> Voice | None:
    """Who speaks, or None for a text-only answer. Raises `InvalidRequest`, naming the field."""
    if not body.wants_audio:
        return None
    return choose_speaker(body.audio or ChatAudio(), body.seed, backend, owner, "audio.")


def to_request(body: ChatBody, backend: Backend, terms: Terms, owner: str | None) -> ChatRequest:
    """Translate a body. Raises `InvalidRequest`, naming the field."""
    check(body, backend)
    return ChatRequest(
        **vars(terms),
        messages=to_messages(body),
        sampling=to_sampling(body, backend),
        voice=to_voice(body, backend, owner),
        thinking=body.chat_template_kwargs.enable_thinking,
    )


def to_output(body: ChatBody, backend: Backend) -> AudioOutput | None:
    """What the audio shall be, or None for a text-only answer."""
    if not body.wants_audio:
        return None
    audio = body.audio or ChatAudio()
    audio_format = "pcm" if audio.format == "pcm16" else audio.format
    return choose_output(audio_format, audio.sample_rate, backend, param="audio.sample_rate")


def seed_scope(body: ChatBody, backend: Backend) -> tuple[str, ...] | None:
    """What the given seed fixes: audio always, sampled text only where the thinker can.

    Greedy text does not depend on chance, so it is fixed as well. None without a seed.
    """
    if body.seed is None:
        return None
    fixed_text = backend.deterministic_text or body.temperature == 0
    return (*(["text"] if fixed_text else []), *(["audio"] if body.wants_audio else []))


def to_answer(body: ChatBody, backend: Backend, request_id: str) -> Answer:
    """What the answer will look like."""
    return Answer(
        request_id=request_id,
        model=backend.model,
        shows_text=body.wants_text,
        audio=to_output(body, backend),
        seed_applies_to=seed_scope(body, backend),
        include_usage=body.stream_options is not None and body.stream_options.include_usage,
    )


def routes(backend: Backend) -> APIRouter:
    """The chat route of `backend`."""
    router = APIRouter(tags=["chat"])

    @router.post("/v1/chat/completions", responses=RESPONSES)
    async def create_chat_completion(body: ChatBody, request: Request) -> Response:
        """Answer a conversation with text, speech or both.

        Streamed answers are server-sent events. `seed_applies_to` in the answer says what a
        given `seed` fixes.
        """
        chat = to_request(body, backend, terms_of(request, body), owner_of(request))
        answer = to_answer(body, backend, chat.id)
        events = until_finished(backend.respond(chat))
        headers = answer.audio.headers if answer.audio else {}
        if body.stream:
            pieces = sse.stream(chunks(events, answer), sse.DONE)
            return StreamedReply(pieces, sse.MEDIA_TYPE, {**sse.HEADERS, **headers})

        async def whole() -> Response:
            return JSONResponse(await complete(events, answer), headers=headers)

        return WholeReply(whole)

    return router
