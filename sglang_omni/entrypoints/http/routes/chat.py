"""`POST /v1/chat/completions`."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import (
    AudioOutputChoice,
    choose_output,
    choose_speaker,
    require_model,
)
from sglang_omni.entrypoints.http.audio_transcript_cache import AudioTranscriptCache
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.message_content import Recall, to_messages
from sglang_omni.entrypoints.http.openapi import EVENTS, examples, success
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute, get_large_body_size
from sglang_omni.entrypoints.http.request_metadata import RequestMetadata, owner_of, terms_of
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse, require_finished
from sglang_omni.entrypoints.http.responses.chat_completion import (
    Answer,
    build_completion,
    stream_chunks,
)
from sglang_omni.entrypoints.http.tool_choice import NO_LARK, check_calling
from sglang_omni.entrypoints.text_limit import chat_texts, check_text
from sglang_omni.entrypoints.work_threads import run_off_loop
from sglang_omni.pipeline.request import ChatRequest, SamplingParams, Voice
from sglang_omni.protocol.chat import ChatAudio, ChatBody, PlainFormat, SchemaFormat
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.functions import AllowedChoice, FunctionChoice, PlainChoice
from sglang_omni.protocol.tools import Tool, ToolChoice


def check(body: ChatBody, backend: Backend) -> None:
    """Refuse what no single field shows to be wrong. Raises `InvalidRequest`."""
    require_model(body.model, backend)
    check_text(chat_texts(body), backend.context_length)
    if body.messages[-1].role not in ("user", "tool"):
        message = "messages: the last message must be the user's or a tool's"
        raise InvalidRequest(message, param="messages")
    if len(set(body.modalities)) < len(body.modalities):
        raise InvalidRequest("modalities: each may be named once", param="modalities")
    if body.audio is not None and not body.wants_audio:
        raise InvalidRequest("audio: needs 'audio' among the modalities", param="audio")
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest("stream_options: needs stream=true", param="stream_options")
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidRequest("top_logprobs: needs logprobs=true", param="top_logprobs")
    check_format(body, backend)
    check_calling(callable_tools(body), calling(body), backend)


def check_format(body: ChatBody, backend: Backend) -> None:
    """Refuse a form of the answer that cannot be kept to. Raises `InvalidRequest`."""
    if body.response_format.type == "text":
        return
    reason = None
    if not backend.has_grammars:
        reason = "the thinker was started without a grammar back end"
    elif not backend.supports_grammar and (body.thinks or callable_tools(body)):
        reason = f"not together with thinking or tools: {NO_LARK}"
    if reason is not None:
        raise InvalidRequest(f"response_format: {reason}", param="response_format")


def json_schema(body: ChatBody) -> str | None:
    """The schema of the answer, as JSON in text; None for ordinary text."""
    match body.response_format:
        case SchemaFormat(json_schema=named):
            return json.dumps(named.schema_)
        case PlainFormat(type="json_object"):
            return json.dumps({"type": "object"})
    return None


def callable_tools(body: ChatBody) -> tuple[Tool, ...]:
    """The functions that the model may call."""
    if body.tool_choice.type == "none":
        return ()
    functions = (tool.function for tool in body.tools)
    return tuple(Tool(one.name, one.description, one.parameters, one.strict) for one in functions)


def calling(body: ChatBody) -> ToolChoice:
    """Which of them the answer calls."""
    several = body.parallel_tool_calls
    match body.tool_choice:
        case FunctionChoice(function=named):
            return ToolChoice(forced=True, only=(named.name,), parallel=False)
        case AllowedChoice(allowed_tools=allowed):
            names = tuple(choice.function.name for choice in allowed.tools)
            return ToolChoice(allowed.mode == "required", names, several)
        case PlainChoice(type=choice):
            return ToolChoice(forced=choice == "required", parallel=several)


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
        frequency_penalty=body.frequency_penalty,
        presence_penalty=body.presence_penalty,
        logit_bias=tuple((int(token), bias) for token, bias in body.logit_bias.items()),
        stop=tuple(body.stop),
        seed=body.seed,
        json_schema=json_schema(body),
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )


def to_voice(body: ChatBody, backend: Backend, owner: str | None) -> Voice | None:
    """Who speaks, or None for a text-only answer. Raises `InvalidRequest`, naming the field."""
    if not body.wants_audio:
        return None
    return choose_speaker(body.audio or ChatAudio(), body.seed, backend, owner, "audio.")


def to_request(
    body: ChatBody, backend: Backend, terms: RequestMetadata, owner: str | None, recall: Recall
) -> ChatRequest:
    """Translate a body. Raises `InvalidRequest`, naming the field."""
    check(body, backend)
    return ChatRequest(
        **vars(terms),
        messages=to_messages(body, recall),
        sampling=to_sampling(body, backend),
        voice=to_voice(body, backend, owner),
        thinking=body.thinks,
        tools=callable_tools(body),
        tool_choice=calling(body),
    )


def each_choice(chat: ChatRequest, count: int) -> list[ChatRequest]:
    """The same question `count` times, each with an id and, where one is given, a seed of its own.

    They share the prompt's cache in the thinker.
    """
    return [chat, *(_another(chat, number) for number in range(1, count))]


def _another(chat: ChatRequest, number: int) -> ChatRequest:
    seed, voice = chat.sampling.seed, chat.voice
    return replace(
        chat,
        id=f"{chat.id}-{number}",
        sampling=replace(chat.sampling, seed=None if seed is None else seed + number),
        voice=None if voice is None else replace(voice, seed=voice.seed + number),
    )


def to_output(body: ChatBody, backend: Backend) -> AudioOutputChoice | None:
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


def to_answer(
    body: ChatBody, backend: Backend, chat: ChatRequest, spoken: AudioTranscriptCache
) -> Answer:
    """What the answer will look like."""
    return Answer(
        request_id=chat.id,
        model=backend.model,
        shows_text=body.wants_text,
        audio=to_output(body, backend),
        seed_applies_to=seed_scope(body, backend),
        include_usage=body.stream_options is not None and body.stream_options.include_usage,
        token_text=backend.token_piece if body.logprobs else None,
        remember=partial(spoken.keep, chat.tenant),
    )


def _examples(model: str) -> dict[str, Any]:
    question = {"role": "user", "content": "What is 17 + 25?"}
    text = {"model": model, "messages": [question], "max_tokens": 64}
    return {
        "text": text,
        "text_and_speech": {**text, "modalities": ["text", "audio"], "audio": {"format": "wav"}},
        "streamed": {**text, "stream": True},
    }


def routes(backend: Backend) -> APIRouter:
    """The chat route of `backend`."""
    router = APIRouter(tags=["chat"], route_class=JSONRoute)
    spoken = AudioTranscriptCache()

    @router.post(
        "/v1/chat/completions",
        response_class=Response,
        responses=success("The answer, whole or in chunks", "application/json", EVENTS) | RESPONSES,
        openapi_extra=examples(**_examples(backend.model)),
    )
    async def create_chat_completion(body: ChatBody, request: Request) -> Response:
        """Answer a conversation with text, speech or both, or by calling a function.

        Streamed answers are server-sent events. `seed_applies_to` in the answer says what a
        given `seed` fixes: the noise of the speech (`audio`), and where that can be, the sampled
        `text`.
        """
        terms = terms_of(request, body)
        recall = partial(spoken.recall, terms.tenant)
        owner = owner_of(request)
        # What is large has had a parse of its own; to look through it takes about as long.
        size = get_large_body_size(request)
        chat = await run_off_loop(size, to_request, body, backend, terms, owner, recall)
        answer = to_answer(body, backend, chat, spoken)
        choices = [require_finished(backend.respond(one)) for one in each_choice(chat, body.n)]
        headers = answer.audio.headers if answer.audio else {}
        if body.stream:
            return sse.SSEResponse(stream_chunks(choices, answer), headers, sse.DONE)

        async def whole() -> Response:
            return JSONResponse(await build_completion(choices, answer), headers=headers)

        return CancellableResponse(whole)

    return router
