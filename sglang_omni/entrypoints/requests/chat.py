"""Conversion of a chat's body to a request of the pipeline."""

import json
from collections.abc import Sequence
from dataclasses import replace

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.chat_images import check_image_answer
from sglang_omni.entrypoints.requests.messages import RecallTranscript, to_messages
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.reading import build_answer_reading
from sglang_omni.entrypoints.requests.sampling import (
    check_stream_options,
    check_token_limit,
    convert_sampling,
)
from sglang_omni.entrypoints.requests.tool_choice import NO_GRAMMAR_SUPPORT, check_tool_choice
from sglang_omni.entrypoints.requests.voices import choose_speaker
from sglang_omni.entrypoints.text_limit import check_text_length, iterate_chat_texts
from sglang_omni.media.limits import VideoOptions, VideoSound
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Voice
from sglang_omni.protocol.chat import ChatAudio, ChatBody, PlainFormat, SchemaFormat
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.functions import AllowedChoice, FunctionChoice, PlainChoice
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.protocol.tools import Tool, ToolChoice


def check_body(body: ChatBody, backend: Backend) -> None:
    """Check what involves several fields. Raises `InvalidRequest`."""
    require_model(body.model, backend)
    check_text_length(iterate_chat_texts(body), backend.context_length)
    if body.messages[-1].role not in ("user", "tool"):
        message = "messages: the last message must have the role 'user' or 'tool'"
        raise InvalidRequest(message, param="messages")
    if len(set(body.modalities)) < len(body.modalities):
        raise InvalidRequest("modalities: must not repeat a value", param="modalities")
    if body.audio is not None and not body.wants_audio:
        raise InvalidRequest("audio: requires 'audio' in modalities", param="audio")
    check_image_answer(body, backend)
    check_stream_options(body)
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidRequest("top_logprobs: requires logprobs=true", param="top_logprobs")
    check_response_format(body, backend)
    check_tool_choice(get_callable_tools(body), build_tool_choice(body), backend)


def check_response_format(body: ChatBody, backend: Backend) -> None:
    """Check that the server can enforce the response format. Raises `InvalidRequest`."""
    if body.response_format.type == "text":
        return
    reason = None
    if not backend.has_grammars:
        reason = "the thinker was started without a grammar back end"
    elif not backend.supports_grammar and (body.thinks or get_callable_tools(body)):
        reason = f"cannot be combined with thinking or tools: {NO_GRAMMAR_SUPPORT}"
    if reason is not None:
        raise InvalidRequest(f"response_format: {reason}", param="response_format")


def build_json_schema(body: ChatBody) -> str | None:
    """Return the JSON schema of the answer as text, or None for ordinary text."""
    match body.response_format:
        case SchemaFormat(json_schema=named_schema):
            return json.dumps(named_schema.schema_)
        case PlainFormat(type="json_object"):
            return json.dumps({"type": "object"})
    return None


def get_callable_tools(body: ChatBody) -> tuple[Tool, ...]:
    """Return the functions that the model may call."""
    if body.tool_choice.type == "none":
        return ()
    specs = (tool.function for tool in body.tools)
    return tuple(Tool(spec.name, spec.description, spec.parameters, spec.strict) for spec in specs)


def build_tool_choice(body: ChatBody) -> ToolChoice:
    """Return which functions the answer may or must call."""
    is_parallel = body.parallel_tool_calls
    match body.tool_choice:
        case FunctionChoice(function=function):
            return ToolChoice(forced=True, only=(function.name,), parallel=False)
        case AllowedChoice(allowed_tools=allowed):
            names = tuple(choice.function.name for choice in allowed.tools)
            return ToolChoice(allowed.mode == "required", names, is_parallel)
        case PlainChoice(type=choice):
            return ToolChoice(forced=choice == "required", parallel=is_parallel)


def choose_token_limit(body: ChatBody, backend: Backend) -> int:
    """Return the maximum number of tokens to generate.

    Raises:
        InvalidRequest: The two names of the limit have different values, or the limit exceeds the
            server's.
    """
    limits = {
        name: value
        for name in ("max_tokens", "max_completion_tokens")
        if (value := getattr(body, name)) is not None
    }
    if len(set(limits.values())) > 1:
        raise InvalidRequest(
            "max_tokens: differs from max_completion_tokens, its newer name", param="max_tokens"
        )
    for name, value in limits.items():
        check_token_limit(name, value, backend)
    default = min(SamplingParams.max_tokens, backend.max_tokens)
    return next(iter(limits.values()), default)


def build_sampling_params(body: ChatBody, backend: Backend) -> SamplingParams:
    """Return the thinker's sampling parameters. Raises `InvalidRequest` for the token limit."""
    return replace(
        convert_sampling(body, choose_token_limit(body, backend)),
        json_schema=build_json_schema(body),
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )


def choose_video_options(body: ChatBody, backend: Backend) -> VideoOptions:
    """Return the options of videos. Raises `InvalidRequest` for a sound that the model ignores."""
    capabilities, wanted = backend.capabilities, body.use_audio_in_video
    if wanted and not capabilities.video_sound:
        raise InvalidRequest(
            f"use_audio_in_video: {capabilities.name} does not hear the sound of videos",
            param="use_audio_in_video",
        )
    default: VideoSound = "optional" if capabilities.video_sound else "off"
    sound: VideoSound = default if wanted is None else "required" if wanted else "off"
    return VideoOptions(body.video_fps, body.video_max_frames, sound)


def choose_answer_voice(body: ChatBody, backend: Backend, owner: str | None) -> Voice | None:
    """Return the voice, or None for a text-only answer. Raises `InvalidRequest` for a field."""
    if not body.wants_audio:
        return None
    return choose_speaker(body.audio or ChatAudio(), body.seed, backend, owner, "audio.")


def build_chat_request(
    body: ChatBody,
    backend: Backend,
    metadata: RequestMetadata,
    owner: str | None,
    recall: RecallTranscript,
    attached: Sequence[MediaPart] = (),
) -> ChatRequest:
    """Convert a body to a request of the pipeline. Raises `InvalidRequest`, naming the field.

    `attached` are media of the last message that are not in the body.
    """
    check_body(body, backend)
    messages = to_messages(body, recall, attached, choose_video_options(body, backend))
    return ChatRequest(
        **vars(metadata),
        messages=messages,
        reading=build_answer_reading(messages, backend) if body.wants_audio else backend.reading,
        sampling=build_sampling_params(body, backend),
        voice=choose_answer_voice(body, backend, owner),
        thinking=body.thinks,
        tools=get_callable_tools(body),
        tool_choice=build_tool_choice(body),
    )
