"""Rules for the body of `POST /v1/chat/completions`."""

from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.chat import (
    ChatAudio,
    ChatBody,
    NamedSchema,
    PlainFormat,
    SchemaFormat,
)
from sglang_omni.protocol.compat.chat_ignored import IGNORED
from sglang_omni.protocol.compat.conversions import (
    convert_priority,
    merge_object,
    rename,
    set_default,
)
from sglang_omni.protocol.compat.field_rules import (
    Change,
    Convert,
    FieldRules,
    Fields,
    Mapped,
    Refused,
    list_own_names,
)
from sglang_omni.protocol.compat.images import CHAT_IMAGE_RULES
from sglang_omni.protocol.compat.messages import MESSAGE_RULES, TOOL_RULES
from sglang_omni.protocol.compat.reasons import (
    BOTH_ENGINES,
    BOTH_PEERS,
    GATEWAYS,
    OPENAI,
    OPENROUTER,
    SGLANG,
    SGLANG_OMNI,
    VLLM,
    VLLM_OMNI,
)
from sglang_omni.protocol.compat.sampling import (
    convert_chat_stage_params,
    convert_params_list,
    convert_stage_sampling,
)
from sglang_omni.protocol.compat.stream_options import STREAM_OPTIONS_RULES
from sglang_omni.protocol.compat.structured import (
    REFUSED,
    convert_guided_json,
    convert_structured_outputs,
    rewrite_response_format,
)
from sglang_omni.protocol.compat.thinking import (
    THINKING_RULES,
    convert_reasoning,
    convert_thinking,
)
from sglang_omni.protocol.compat.video import CHAT_VIDEO_RULES

# Fields of drawing that vllm-omni's chats have at the top.
_DRAWING_FIELDS = ("width", "height", "num_inference_steps", "guidance_scale", "negative_prompt")
# OpenAI's tiers as priorities in the queue.
_TIERS = {"flex": "low", "priority": "high"}


def convert_voice(name: str, value: Any, fields: Fields) -> Change:
    """Convert the name of a speaker: it is the voice of a spoken answer."""
    modalities = fields.get("modalities")
    if not isinstance(modalities, list) or "audio" not in modalities:
        return Change(ignored=(name,))
    return Change(set_default(fields, ("audio", "voice"), value))


def convert_speaker(value: Any, fields: Fields) -> Change:
    """Convert `speaker`."""
    return convert_voice("speaker", value, fields)


def convert_top_voice(value: Any, fields: Fields) -> Change:
    """Convert `voice` outside `audio`."""
    return convert_voice("voice", value, fields)


def convert_audio_format(value: Any, fields: Fields) -> Change:
    """Convert the name of 16-bit samples on the speech route."""
    return Change({"format": "pcm16" if value == "pcm" else value})


def convert_service_tier(value: Any, fields: Fields) -> Change:
    """Convert OpenAI's tier, if it says something about the queue."""
    if isinstance(value, str) and value in _TIERS:
        return Change(set_default(fields, ("priority",), _TIERS[value]))
    is_plain = value in ("auto", "default")
    return Change(ignored=() if is_plain else ("service_tier",))


def convert_image_generation(value: Any, fields: Fields) -> Change:
    """Convert sglang-omni's fields of an image. False or no fields ask for none."""
    return Change() if value is False or value == {} else Change(_merge_image(value, fields))


def convert_image_config(value: Any, fields: Fields) -> Change:
    """Convert OpenRouter's fields of an image, which concern answers with images only."""
    modalities = fields.get("modalities")
    if not isinstance(modalities, list) or "image" not in modalities:
        return Change(ignored=("image_config",))
    return Change(_merge_image(value, fields))


def convert_drawing_field(name: str) -> Convert:
    """Return the conversion of a field of drawing that stands outside `image`."""

    def convert(value: Any, fields: Fields) -> Change:
        modalities = fields.get("modalities")
        if not isinstance(modalities, list) or "image" not in modalities:
            return Change(ignored=(name,))
        return Change(_merge_image({name: value}, fields))

    return convert


def _merge_image(value: Any, fields: Fields) -> Fields:
    given = fields.get("image")
    if isinstance(value, Mapping) and isinstance(given, Mapping):
        return {"image": {**value, **given}}
    return {} if given is not None else {"image": value}


_MAPPED = (
    Mapped("extra_body", GATEWAYS, "fields of the body", merge_object("extra_body")),
    Mapped("speaker", BOTH_PEERS, "`audio.voice`, if audio is asked for", convert_speaker),
    Mapped("voice", GATEWAYS, "`audio.voice`, if audio is asked for", convert_top_voice),
    Mapped(
        "service_tier", OPENAI, "`priority`: low for flex, high for priority", convert_service_tier
    ),
    Mapped("priority", VLLM, "high below 0, low above, if it is a number", convert_priority),
    Mapped("max_new_tokens", SGLANG, "`max_tokens`", rename("max_new_tokens", "max_tokens")),
    Mapped(
        "sampling_params_list",
        VLLM_OMNI,
        "parameters of the thinker, from its first entry",
        convert_params_list,
    ),
    Mapped(
        "stage_params",
        SGLANG_OMNI,
        "parameters of the thinker, from its `thinker`",
        convert_chat_stage_params,
    ),
    Mapped(
        "stage_sampling",
        SGLANG_OMNI,
        "parameters of the thinker, from its `thinker`",
        convert_stage_sampling,
    ),
    Mapped("guided_json", VLLM, "`response_format`", convert_guided_json),
    Mapped("structured_outputs", VLLM, "`response_format`", convert_structured_outputs),
    *THINKING_RULES,
    Mapped("thinking", GATEWAYS, "`chat_template_kwargs.enable_thinking`", convert_thinking),
    Mapped("reasoning", GATEWAYS, "`reasoning_effort`, or `enable_thinking`", convert_reasoning),
    *CHAT_VIDEO_RULES,
    Mapped("image_generation", SGLANG_OMNI, "`image`", convert_image_generation),
    Mapped("image_config", OPENROUTER, "`image`, if an image is asked for", convert_image_config),
    *(
        Mapped(
            *(name, VLLM_OMNI, f"`image.{name}`, if an image is asked for"),
            convert_drawing_field(name),
        )
        for name in _DRAWING_FIELDS
    ),
)
_REFUSED = (
    *REFUSED,
    Refused("functions", OPENAI, "is OpenAI's former field; send tools", ([],)),
    Refused(
        "function_call", OPENAI, "is OpenAI's former field; send tool_choice", ("auto", "none")
    ),
    Refused("documents", BOTH_ENGINES, "put them into a message", ([],)),
    Refused("chat_template", BOTH_ENGINES, "the model's own template is used", ("",)),
    Refused("logits_processors", VLLM, "requests cannot bring code", ([],)),
    Refused("custom_logit_processor", SGLANG, "requests cannot bring code", ("",)),
    Refused("lora_path", SGLANG, "this server has no adapters", ("",)),
    Refused("continue_final_message", VLLM, "an answer cannot continue a given one", (False,)),
)

CHAT_RULES = FieldRules(
    own=list_own_names(ChatBody),
    rules=(*_MAPPED, *_REFUSED, *IGNORED),
    nested={
        "messages": MESSAGE_RULES,
        "tools": TOOL_RULES,
        "audio": FieldRules(
            own=list_own_names(ChatAudio),
            rules=(
                Mapped("speaker", BOTH_PEERS, "`audio.voice`", rename("speaker", "voice")),
                Mapped("format", SGLANG_OMNI, "`pcm16` for pcm", convert_audio_format),
            ),
        ),
        "image": CHAT_IMAGE_RULES,
        "stream_options": STREAM_OPTIONS_RULES,
        "response_format": FieldRules(
            own=list_own_names(PlainFormat, SchemaFormat),
            nested={"json_schema": FieldRules(list_own_names(NamedSchema))},
            rewrite=rewrite_response_format,
        ),
    },
)
