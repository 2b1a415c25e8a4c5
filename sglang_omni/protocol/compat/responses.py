"""Rules for the body of `POST /v1/responses`."""

from typing import Any

from sglang_omni.protocol.compat.chat import convert_service_tier
from sglang_omni.protocol.compat.chat_ignored import CHAT_ENGINE_FIELDS
from sglang_omni.protocol.compat.conversions import (
    convert_priority,
    ignore,
    join_names,
    make_error,
    merge_object,
    rename,
)
from sglang_omni.protocol.compat.field_rules import (
    Change,
    FieldRules,
    Fields,
    Ignored,
    Mapped,
    Refused,
    Rule,
    list_own_names,
)
from sglang_omni.protocol.compat.images import DRAWING_RULES
from sglang_omni.protocol.compat.reasons import (
    AUTOMATIC_CACHE,
    GATEWAYS,
    NO_USERS,
    OPENAI,
    VLLM,
)
from sglang_omni.protocol.compat.response_items import RESPONSE_ITEM_RULES
from sglang_omni.protocol.compat.shared_ignored import ENGINE_FIELDS, GATEWAY_FIELDS
from sglang_omni.protocol.compat.thinking import (
    THINKING_RULES,
)
from sglang_omni.protocol.functions import PlainChoice
from sglang_omni.protocol.responses import (
    AllowedToolsChoice,
    CreateResponseBody,
    ImageGenerationTool,
    ImageToolChoice,
    NamedFunctionChoice,
    ResponseFunctionTool,
    ResponseReasoning,
    ResponseStreamOptions,
    ResponseTextConfig,
    SchemaTextFormat,
)

# Values of `include` that ask for what hosted tools return, for the reasoning in a form that only
# its provider can read, or for the URLs of images, which stored items have anyway.
_IGNORED_INCLUDES = frozenset(
    {
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
    }
)


def convert_include(value: Any, fields: Fields) -> Change:
    """Convert `include`: what hosted tools or other models would add is left out."""
    if not isinstance(value, list):
        return Change({"include": value})
    ignored = [name for name in value if isinstance(name, str) and name in _IGNORED_INCLUDES]
    kept = [name for name in value if name not in ignored]
    return Change({"include": kept}, join_names("include", ignored))


def convert_action(value: Any, fields: Fields) -> Change:
    """Convert `action` of the image tool: whether a new image is drawn or one is changed."""
    if value == "auto":
        return Change()
    sources = {"generate": "none", "edit": "latest"}
    if not isinstance(value, str) or value not in sources:
        raise make_error("action", "must be auto, generate or edit")
    return Change({"source": sources[value]})


_MAPPED = (
    Mapped("extra_body", GATEWAYS, "fields of the body", merge_object("extra_body")),
    Mapped(
        "service_tier", OPENAI, "`priority`: low for flex, high for priority", convert_service_tier
    ),
    Mapped("priority", VLLM, "high below 0, low above, if it is a number", convert_priority),
    Mapped("include", OPENAI, "`message.output_text.logprobs`; others ignored", convert_include),
    *(
        Mapped(name, GATEWAYS, "`max_output_tokens`", rename(name, "max_output_tokens"))
        for name in ("max_tokens", "max_completion_tokens")
    ),
    *THINKING_RULES,
)
_REFUSED = (
    Refused("background", OPENAI, "a response is made while its request waits", (False,)),
    Refused("conversation", OPENAI, "this server stores responses; send previous_response_id"),
    Refused("prompt", OPENAI, "this server stores no prompts; send instructions and input"),
)
_IMAGE_TOOL_RULES: tuple[Rule, ...] = (
    Refused("input_image_mask", OPENAI, "the model edits whole images"),
    Mapped("action", OPENAI, "`source`: `none` for generate, `latest` for edit", convert_action),
    *ignore(OPENAI, "the model that answers also draws", "model"),
    *DRAWING_RULES,
    *ignore(OPENAI, "the model sees the images as they are", "input_fidelity"),
)
_IGNORED = (
    *ignore(OPENAI, "a conversation that does not fit is an error", truncation="disabled"),
    *ignore(OPENAI, "it limits hosted tools, and there are none", "max_tool_calls"),
    *ignore(OPENAI, NO_USERS, "user", "safety_identifier"),
    *ignore(OPENAI, AUTOMATIC_CACHE, "prompt_cache_key", "prompt_cache_retention"),
    *CHAT_ENGINE_FIELDS,
    *ENGINE_FIELDS,
    *GATEWAY_FIELDS,
)

CREATE_RESPONSE_RULES = FieldRules(
    own=list_own_names(CreateResponseBody),
    rules=(*_MAPPED, *_REFUSED, *_IGNORED),
    nested={
        "input": RESPONSE_ITEM_RULES,
        "tools": FieldRules(
            own=list_own_names(ResponseFunctionTool, ImageGenerationTool),
            rules=(
                Ignored("cache_control", GATEWAYS, AUTOMATIC_CACHE),
                *_IMAGE_TOOL_RULES,
            ),
        ),
        "tool_choice": FieldRules(
            list_own_names(PlainChoice, NamedFunctionChoice, ImageToolChoice, AllowedToolsChoice)
        ),
        "text": FieldRules(
            own=list_own_names(ResponseTextConfig),
            rules=ignore(OPENAI, "the prompt says how long an answer is", verbosity="medium"),
            nested={"format": FieldRules(list_own_names(SchemaTextFormat))},
        ),
        "reasoning": FieldRules(
            own=list_own_names(ResponseReasoning),
            rules=ignore(OPENAI, "the reasoning is returned whole", "summary", "generate_summary"),
        ),
        "stream_options": FieldRules(
            own=list_own_names(ResponseStreamOptions),
            rules=(
                Ignored("include_obfuscation", OPENAI, "events are not padded", (False,)),
                Ignored("include_usage", GATEWAYS, "the last event has the usage", (True,)),
            ),
        ),
    },
)
