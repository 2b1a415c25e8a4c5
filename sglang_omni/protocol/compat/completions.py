"""Rules for the body of `POST /v1/completions`."""

from sglang_omni.protocol.compat.conversions import (
    convert_priority,
    ignore,
    merge_object,
    rename,
)
from sglang_omni.protocol.compat.field_rules import (
    FieldRules,
    Mapped,
    Refused,
    list_own_names,
)
from sglang_omni.protocol.compat.reasons import (
    BOTH_ENGINES,
    GATEWAYS,
    NO_USERS,
    NOT_STORED,
    OPENAI,
    SGLANG,
    VLLM,
)
from sglang_omni.protocol.compat.shared_ignored import ENGINE_FIELDS, GATEWAY_FIELDS
from sglang_omni.protocol.compat.stream_options import STREAM_OPTIONS_RULES
from sglang_omni.protocol.completions import CompletionBody

_NO_SCHEMAS = "only chats are held to a form; use POST /v1/chat/completions"
_NO_CODE = "requests cannot bring code"

COMPLETION_RULES = FieldRules(
    own=list_own_names(CompletionBody),
    rules=(
        Mapped("extra_body", GATEWAYS, "fields of the body", merge_object("extra_body")),
        Mapped("priority", VLLM, "high below 0, low above, if it is a number", convert_priority),
        *(
            Mapped(name, origin, "`max_tokens`", rename(name, "max_tokens"))
            for name, origin in (("max_new_tokens", SGLANG), ("max_completion_tokens", GATEWAYS))
        ),
        Refused("suffix", OPENAI, "the model only continues a text", ("",)),
        Refused("response_format", BOTH_ENGINES, _NO_SCHEMAS, ({"type": "text"},)),
        *(
            Refused(name, VLLM, _NO_SCHEMAS, neutral)
            for name, neutral in (
                ("guided_json", ()),
                ("guided_regex", ("",)),
                ("guided_choice", ([],)),
                ("guided_grammar", ("",)),
                ("structured_outputs", ({},)),
            )
        ),
        *(Refused(name, SGLANG, _NO_SCHEMAS, ("",)) for name in ("json_schema", "regex", "ebnf")),
        Refused("prompt_embeds", VLLM, "send a text or token ids", ("", [])),
        Refused("logits_processors", VLLM, _NO_CODE, ([],)),
        Refused("custom_logit_processor", SGLANG, _NO_CODE, ("",)),
        Refused("lora_path", SGLANG, "this server has no adapters", ("",)),
        *ignore(OPENAI, NO_USERS, "user"),
        *ignore(GATEWAYS, NOT_STORED, store=False, metadata={}),
        *ignore(BOTH_ENGINES, "the tokenizer adds none", add_special_tokens=True),
        *ignore(VLLM, "echo with logprobs returns them", "prompt_logprobs"),
        *ENGINE_FIELDS,
        *GATEWAY_FIELDS,
    ),
    nested={"stream_options": STREAM_OPTIONS_RULES},
)
