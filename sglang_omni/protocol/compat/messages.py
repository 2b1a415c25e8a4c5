"""Rules for the messages of a chat, their parts and their tool calls."""

from typing import Any

from sglang_omni.protocol.chat import ChatMessage, PastImage
from sglang_omni.protocol.compat.conversions import ignore
from sglang_omni.protocol.compat.field_rules import (
    Change,
    FieldRules,
    Fields,
    Ignored,
    Mapped,
    Refused,
    list_own_names,
)
from sglang_omni.protocol.compat.reasons import AUTOMATIC_CACHE, GATEWAYS, OPENAI, VLLM
from sglang_omni.protocol.compat.video import PART_VIDEO_RULES
from sglang_omni.protocol.functions import FunctionCall, FunctionSpec, PastCall, ToolSpec
from sglang_omni.protocol.media import (
    AudioPart,
    AudioUrl,
    ImagePart,
    ImageUrl,
    InlineAudio,
    InputAudioPart,
    TextContentPart,
    VideoPart,
    VideoUrl,
)

# Types of parts in the form of Qwen's and sglang-omni's examples, and of OpenAI's responses.
_MEDIA_TYPES = {"image": "image_url", "audio": "audio_url", "video": "video_url"}
_TEXT_TYPES = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
EARLIER_ANSWER = "it describes an earlier answer and is not part of the prompt"
_CACHE_CONTROL = Ignored("cache_control", GATEWAYS, AUTOMATIC_CACHE)


def rewrite_part(part: Fields) -> Fields:
    """Return a part of another program in the form of OpenAI's chats."""
    kind = part.get("type")
    if kind in _MEDIA_TYPES:
        source = part.get(kind, part.get(_MEDIA_TYPES[kind]))
        rest = {name: value for name, value in part.items() if name not in ("type", kind)}
        return {**rest, "type": _MEDIA_TYPES[kind], _MEDIA_TYPES[kind]: source}
    if kind in _TEXT_TYPES:
        text = part.get("refusal") if kind == "refusal" else part.get("text")
        dropped = ("type", "text", "refusal", "annotations", "logprobs")
        rest = {name: value for name, value in part.items() if name not in dropped}
        return {**rest, "type": "text", "text": text}
    if kind == "input_image":
        rest = {name: value for name, value in part.items() if name not in ("type", "detail")}
        url = {"url": part.get("image_url"), "detail": part.get("detail")}
        return {**rest, "type": "image_url", "image_url": url}
    return part


def _rewrite_typed_part(part: Fields) -> Fields:
    # Validation reports a type that is no text.
    return rewrite_part(part) if isinstance(part.get("type"), str) else part


def _convert_reasoning(value: Any, fields: Fields) -> Change:
    """Convert vLLM's newer name of `reasoning_content`."""
    is_text = isinstance(value, str) and fields.get("reasoning_content") is None
    return Change({"reasoning_content": value} if is_text else {})


PART_RULES = FieldRules(
    own=list_own_names(TextContentPart, ImagePart, InputAudioPart, AudioPart, VideoPart),
    rules=(
        _CACHE_CONTROL,
        Ignored("prompt_cache_breakpoint", OPENAI, AUTOMATIC_CACHE),
        Ignored("uuid", VLLM, "media are cached by their content"),
        *PART_VIDEO_RULES,
    ),
    nested={
        "image_url": FieldRules(
            list_own_names(ImageUrl),
            ignore(GATEWAYS, "the format is detected from the file", "format", "media_type"),
        ),
        "audio_url": FieldRules(list_own_names(AudioUrl)),
        "video_url": FieldRules(list_own_names(VideoUrl)),
        "input_audio": FieldRules(list_own_names(InlineAudio)),
    },
    rewrite=_rewrite_typed_part,
)
CALL_RULES = FieldRules(
    own=list_own_names(PastCall),
    rules=ignore(GATEWAYS, EARLIER_ANSWER, "index", "extra_content", "provider_specific_fields"),
    nested={"function": FieldRules(list_own_names(FunctionCall))},
)
MESSAGE_RULES = FieldRules(
    own=list_own_names(ChatMessage),
    rules=(
        Ignored("name", OPENAI, "the prompt has no names of speakers"),
        Mapped("reasoning", VLLM, "`reasoning_content`", _convert_reasoning),
        Refused("function_call", OPENAI, "is OpenAI's former field; send tool_calls", ({},)),
        _CACHE_CONTROL,
        *ignore(
            *(GATEWAYS, EARLIER_ANSWER),
            *("annotations", "reasoning_details", "thinking_blocks", "provider_specific_fields"),
            *("id", "created_at", "timestamp", "metadata"),
        ),
    ),
    nested={
        "content": PART_RULES,
        "tool_calls": CALL_RULES,
        "images": FieldRules(
            own=list_own_names(PastImage),
            nested={"image_url": FieldRules(list_own_names(ImageUrl))},
        ),
    },
)
TOOL_RULES = FieldRules(
    own=list_own_names(ToolSpec),
    rules=(_CACHE_CONTROL,),
    nested={
        "function": FieldRules(
            own=list_own_names(FunctionSpec),
            rules=(
                _CACHE_CONTROL,
                Ignored("examples", GATEWAYS, "the prompt has no examples of calls"),
            ),
        )
    },
)
