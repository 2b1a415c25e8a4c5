"""The route `POST /v1/chat/completions`."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import AudioOutputChoice, choose_output
from sglang_omni.entrypoints.http.audio_transcript_cache import AudioTranscriptCache
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_examples, document_success
from sglang_omni.entrypoints.http.request_body.json_route import (
    JSON_TYPE,
    JSONRoute,
    get_large_body_size,
)
from sglang_omni.entrypoints.http.request_metadata import (
    build_request_metadata,
    get_owner,
    get_state_tenant,
)
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.http.responses.chat_chunks import stream_chunks
from sglang_omni.entrypoints.http.responses.chat_completion import (
    Answer,
    Remember,
    build_completion,
    encode_completion,
)
from sglang_omni.entrypoints.http.responses.image_files import FileEvents, ImageEncoder
from sglang_omni.entrypoints.requests.chat import build_chat_request
from sglang_omni.entrypoints.requests.chat_images import CHAT_IMAGE_NAMES, build_chat_images
from sglang_omni.entrypoints.requests.choices import expand_choices
from sglang_omni.entrypoints.requests.messages import list_cited_audio
from sglang_omni.entrypoints.requests.metadata import require_model
from sglang_omni.entrypoints.requests.sampling import is_text_fixed
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.image_answer import AnswerEvents, answer_with_image, append_image
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.chat import ChatAudio, ChatBody
from sglang_omni.protocol.compat.chat import CHAT_RULES


def choose_audio_output(body: ChatBody, backend: Backend) -> AudioOutputChoice | None:
    """Return the format of the audio, or None for a text-only answer."""
    if not body.wants_audio:
        return None
    audio = body.audio or ChatAudio()
    audio_format = "pcm" if audio.format == "pcm16" else audio.format
    return choose_output(audio_format, audio.sample_rate, backend, param="audio.sample_rate")


def get_seed_scope(body: ChatBody, backend: Backend) -> tuple[str, ...] | None:
    """Return what the given seed fixes, or None without a seed.

    It always fixes audio and images. It fixes text if the thinker is deterministic or decoding is
    greedy.
    """
    if body.seed is None:
        return None
    is_fixed = {
        "text": body.wants_words and is_text_fixed(body, backend),
        "audio": body.wants_audio,
        "image": body.wants_image and body.image_fields.seed is None,
    }
    return tuple(name for name, is_so in is_fixed.items() if is_so)


def start_choices(body: ChatBody, chat: ChatRequest, backend: Backend) -> list[FileEvents]:
    """Return the events of each choice, with files in place of images.

    Raises `InvalidRequest` for a field about images.
    """
    chats = expand_choices(chat, body.n)
    if not body.wants_image:
        return [require_finished(backend.respond(choice)) for choice in chats]
    encoder = ImageEncoder(body.image_fields)

    def draw(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        return CHAT_IMAGE_NAMES.in_errors_of(backend.draw(request))

    def answer(choice: ChatRequest, image: ImageRequest) -> AnswerEvents:
        if not body.wants_words:
            return answer_with_image(image, draw)
        return append_image(require_finished(backend.respond(choice)), image, draw)

    images = build_chat_images(body, chats, backend)
    return [encoder.encode_events(answer(*choice)) for choice in zip(chats, images, strict=True)]


def build_answer(body: ChatBody, backend: Backend, chat: ChatRequest, remember: Remember) -> Answer:
    """Return the properties of the answer. `remember` keeps the transcripts of its audio."""
    return Answer(
        request_id=chat.id,
        model=require_model(body.model, backend),
        shows_text=body.wants_text,
        audio=choose_audio_output(body, backend),
        seed_applies_to=get_seed_scope(body, backend),
        include_usage=body.stream_options is not None and body.stream_options.include_usage,
        token_text=backend.decode_token if body.logprobs else None,
        remember=remember,
    )


def _build_examples(model: str, *, draws_images: bool) -> dict[str, Any]:
    question = {"role": "user", "content": "What is 17 + 25?"}
    text = {"model": model, "messages": [question], "max_tokens": 64}
    image = {**text, "modalities": ["text", "image"], "image": {"size": "512x512"}}
    return {
        "text": text,
        "text_and_speech": {**text, "modalities": ["text", "audio"], "audio": {"format": "wav"}},
        **({"text_and_image": image} if draws_images else {}),
        "streamed": {**text, "stream": True},
    }


class ChatRoute(JSONRoute):
    """The route of chats."""

    field_rules = CHAT_RULES


def create_router(backend: Backend, transcripts: AudioTranscriptCache) -> APIRouter:
    """Return the chat route of `backend`, which keeps what was spoken in `transcripts`."""
    router = APIRouter(tags=["chat"], route_class=ChatRoute)
    examples = _build_examples(backend.model, draws_images=backend.capabilities.image_output)

    @router.post(
        "/v1/chat/completions",
        response_class=Response,
        responses=document_success(
            "The answer, whole or in chunks", "application/json", EVENT_STREAM
        )
        | RESPONSES,
        openapi_extra=document_examples(**examples),
    )
    async def create_chat_completion(body: ChatBody, request: Request) -> Response:
        """Answer a conversation with text, speech and an image, or with a function call.

        `modalities` chooses among `text`, `audio` and `image`. The image comes last, in `images` of
        the message. Streamed answers are server-sent events. `seed_applies_to` in the answer says
        what a given `seed` fixes: the noise of the speech (`audio`), that of the `image`, and, if
        the server can, the sampled `text`.
        """
        metadata = build_request_metadata(request, body)
        owner, tenant = get_owner(request), get_state_tenant(request)
        recall = (await transcripts.recall(tenant, list_cited_audio(body))).get
        # Converting a large body takes about as long as parsing it, so it runs in a thread too.
        size = get_large_body_size(request)
        chat = await run_off_loop(size, build_chat_request, body, backend, metadata, owner, recall)
        answer = build_answer(body, backend, chat, partial(transcripts.keep, tenant))
        choices = start_choices(body, chat, backend)
        headers = answer.audio.headers if answer.audio else {}
        if body.stream:
            return sse.SSEResponse(stream_chunks(choices, answer), headers, sse.DONE)

        async def make_response() -> Response:
            content = await encode_completion(await build_completion(choices, answer))
            return Response(content, media_type=JSON_TYPE, headers=headers)

        return CancellableResponse(make_response)

    return router
