"""Rules for the bodies of `POST /tokenize` and `POST /detokenize`."""

from sglang_omni.protocol.compat.conversions import ignore
from sglang_omni.protocol.compat.field_rules import (
    FieldRules,
    Mapped,
    Refused,
    list_own_names,
)
from sglang_omni.protocol.compat.messages import MESSAGE_RULES, TOOL_RULES
from sglang_omni.protocol.compat.reasons import (
    BOTH_ENGINES,
    GATEWAYS,
    NO_USERS,
    VLLM,
    VLLM_OMNI,
)
from sglang_omni.protocol.compat.thinking import convert_template_options
from sglang_omni.protocol.tokenization import DetokenizeBody, TokenizeBody

TOKENIZE_RULES = FieldRules(
    own=list_own_names(TokenizeBody),
    rules=(
        Mapped(
            "chat_template_kwargs",
            VLLM,
            "`enable_thinking`, also if it is named `thinking`",
            convert_template_options,
        ),
        Refused(
            "add_generation_prompt", VLLM, "a prompt always ends where the answer begins", (True,)
        ),
        Refused(
            "continue_final_message",
            BOTH_ENGINES,
            "an answer cannot continue a given one",
            (False,),
        ),
        Refused("chat_template", VLLM, "the model's own template is used", ("",)),
        *ignore(BOTH_ENGINES, "the tokenizer adds none", add_special_tokens=True),
        *ignore(VLLM_OMNI, "media are not counted", mm_processor_kwargs={}),
        *ignore(GATEWAYS, NO_USERS, "user"),
    ),
    nested={"messages": MESSAGE_RULES, "tools": TOOL_RULES},
)
DETOKENIZE_RULES = FieldRules(
    own=list_own_names(DetokenizeBody), rules=ignore(GATEWAYS, NO_USERS, "user")
)
