"""Rules for the items of a model response and their parts."""

from sglang_omni.protocol.compat.conversions import ignore
from sglang_omni.protocol.compat.field_rules import FieldRules, Ignored, Refused, list_own_names
from sglang_omni.protocol.compat.messages import EARLIER_ANSWER
from sglang_omni.protocol.compat.reasons import AUTOMATIC_CACHE, GATEWAYS, OPENAI
from sglang_omni.protocol.media import InlineAudio, InputAudioPart
from sglang_omni.protocol.response_items import (
    InputFilePart,
    InputImagePart,
    InputTextPart,
    OutputTextPart,
    RefusalPart,
    ResponseFunctionCall,
    ResponseFunctionCallOutput,
    ResponseImageCall,
    ResponseItemReference,
    ResponseMessage,
    ResponseReasoningItem,
)

_CACHE_CONTROL = Ignored("cache_control", GATEWAYS, AUTOMATIC_CACHE)

RESPONSE_PART_RULES = FieldRules(
    own=list_own_names(
        InputTextPart, OutputTextPart, RefusalPart, InputImagePart, InputAudioPart, InputFilePart
    ),
    rules=(
        Refused("file_id", OPENAI, "this server stores no files; send a URL or a data URI"),
        Ignored("prompt_cache_breakpoint", OPENAI, AUTOMATIC_CACHE),
        _CACHE_CONTROL,
        *ignore(OPENAI, EARLIER_ANSWER, "parsed"),
    ),
    nested={"input_audio": FieldRules(list_own_names(InlineAudio))},
)
RESPONSE_ITEM_RULES = FieldRules(
    own=list_own_names(
        ResponseMessage,
        ResponseFunctionCall,
        ResponseFunctionCallOutput,
        ResponseReasoningItem,
        ResponseImageCall,
        ResponseItemReference,
    ),
    rules=(
        _CACHE_CONTROL,
        *ignore(OPENAI, EARLIER_ANSWER, "parsed_arguments", "phase", "created_by"),
    ),
    nested={"content": RESPONSE_PART_RULES, "output": RESPONSE_PART_RULES},
)
