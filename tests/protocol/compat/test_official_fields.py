"""Every field of the installed OpenAI client is an own field or has a rule.

A new version of the client fails this test, rather than its users.
"""

from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from openai.types import completion_create_params
from openai.types.audio.speech_create_params import SpeechCreateParams
from openai.types.audio.transcription_create_params import TranscriptionCreateParamsStreaming
from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionAudioParam,
    ChatCompletionContentPartImageParam,
    ChatCompletionContentPartInputAudioParam,
    ChatCompletionContentPartTextParam,
    ChatCompletionDeveloperMessageParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionStreamOptionsParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolMessageParam,
    ChatCompletionUserMessageParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.realtime import (
    RealtimeResponseCreateParamsParam,
    RealtimeSessionCreateRequestParam,
)
from openai.types.responses import (
    EasyInputMessageParam,
    FunctionToolParam,
    ResponseFormatTextJSONSchemaConfigParam,
    ResponseFunctionToolCallParam,
    ResponseInputAudioParam,
    ResponseInputFileParam,
    ResponseInputImageParam,
    ResponseInputTextParam,
    ResponseOutputMessageParam,
    ResponseOutputRefusalParam,
    ResponseOutputTextParam,
    ResponseReasoningItemParam,
    ResponseTextConfigParam,
    ToolChoiceAllowedParam,
    ToolChoiceFunctionParam,
)
from openai.types.responses.response_create_params import (
    ResponseCreateParamsStreaming,
)
from openai.types.responses.response_create_params import (
    StreamOptions as ResponseStreamOptions,
)
from openai.types.responses.response_includable import ResponseIncludable
from openai.types.responses.response_input_item_param import (
    FunctionCallOutput,
    ItemReference,
    Message,
)
from openai.types.shared_params import FunctionDefinition, Reasoning

from sglang_omni.entrypoints.realtime.field_rules import RESPONSE_RULES, SESSION_RULES
from sglang_omni.protocol.compat.chat import CHAT_RULES
from sglang_omni.protocol.compat.completions import COMPLETION_RULES
from sglang_omni.protocol.compat.field_rules import FieldRules
from sglang_omni.protocol.compat.messages import CALL_RULES, MESSAGE_RULES, PART_RULES, TOOL_RULES
from sglang_omni.protocol.compat.model_names import iterate_well_known
from sglang_omni.protocol.compat.response_items import RESPONSE_ITEM_RULES, RESPONSE_PART_RULES
from sglang_omni.protocol.compat.responses import CREATE_RESPONSE_RULES, convert_include
from sglang_omni.protocol.compat.speech import SPEECH_RULES
from sglang_omni.protocol.compat.transcription import TRANSCRIPTION_RULES
from sglang_omni.protocol.compat.voice_names import OPENAI_VOICES


@pytest.mark.parametrize(
    ("official", "rules"),
    [
        (CompletionCreateParamsStreaming, CHAT_RULES),
        (completion_create_params.CompletionCreateParamsStreaming, COMPLETION_RULES),
        (ChatCompletionStreamOptionsParam, COMPLETION_RULES.nested["stream_options"]),
        (ChatCompletionAudioParam, CHAT_RULES.nested["audio"]),
        (ChatCompletionStreamOptionsParam, CHAT_RULES.nested["stream_options"]),
        (ChatCompletionAssistantMessageParam, MESSAGE_RULES),
        (ChatCompletionDeveloperMessageParam, MESSAGE_RULES),
        (ChatCompletionSystemMessageParam, MESSAGE_RULES),
        (ChatCompletionToolMessageParam, MESSAGE_RULES),
        (ChatCompletionUserMessageParam, MESSAGE_RULES),
        (ChatCompletionContentPartImageParam, PART_RULES),
        (ChatCompletionContentPartInputAudioParam, PART_RULES),
        (ChatCompletionContentPartTextParam, PART_RULES),
        (ChatCompletionMessageFunctionToolCallParam, CALL_RULES),
        (ChatCompletionFunctionToolParam, TOOL_RULES),
        (FunctionDefinition, TOOL_RULES.nested["function"]),
        (ResponseCreateParamsStreaming, CREATE_RESPONSE_RULES),
        (ResponseStreamOptions, CREATE_RESPONSE_RULES.nested["stream_options"]),
        (Reasoning, CREATE_RESPONSE_RULES.nested["reasoning"]),
        (ResponseTextConfigParam, CREATE_RESPONSE_RULES.nested["text"]),
        (
            ResponseFormatTextJSONSchemaConfigParam,
            CREATE_RESPONSE_RULES.nested["text"].nested["format"],
        ),
        (FunctionToolParam, CREATE_RESPONSE_RULES.nested["tools"]),
        (ToolChoiceAllowedParam, CREATE_RESPONSE_RULES.nested["tool_choice"]),
        (ToolChoiceFunctionParam, CREATE_RESPONSE_RULES.nested["tool_choice"]),
        (EasyInputMessageParam, RESPONSE_ITEM_RULES),
        (Message, RESPONSE_ITEM_RULES),
        (ResponseOutputMessageParam, RESPONSE_ITEM_RULES),
        (ResponseFunctionToolCallParam, RESPONSE_ITEM_RULES),
        (FunctionCallOutput, RESPONSE_ITEM_RULES),
        (ResponseReasoningItemParam, RESPONSE_ITEM_RULES),
        (ItemReference, RESPONSE_ITEM_RULES),
        (ResponseInputTextParam, RESPONSE_PART_RULES),
        (ResponseInputImageParam, RESPONSE_PART_RULES),
        (ResponseInputAudioParam, RESPONSE_PART_RULES),
        (ResponseInputFileParam, RESPONSE_PART_RULES),
        (ResponseOutputTextParam, RESPONSE_PART_RULES),
        (ResponseOutputRefusalParam, RESPONSE_PART_RULES),
        (SpeechCreateParams, SPEECH_RULES),
        (TranscriptionCreateParamsStreaming, TRANSCRIPTION_RULES),
        (RealtimeSessionCreateRequestParam, SESSION_RULES),
        (RealtimeResponseCreateParamsParam, RESPONSE_RULES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_official_field_is_known(official: Any, rules: FieldRules) -> None:
    files = {"file"}
    assert set(get_type_hints(official)) - files - rules.known == set()


def list_literals(hint: Any) -> set[str]:
    """Return the values of all literals in a type."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return set().union(*(list_literals(one) for one in get_args(hint)))


@pytest.mark.parametrize("official", [SpeechCreateParams, ChatCompletionAudioParam])
def test_every_official_voice_is_known(official: Any) -> None:
    assert list_literals(get_type_hints(official)["voice"]) <= set(OPENAI_VOICES)


@pytest.mark.parametrize(
    "official",
    [SpeechCreateParams, TranscriptionCreateParamsStreaming, RealtimeSessionCreateRequestParam],
)
def test_every_official_model_for_sound_is_known(official: Any) -> None:
    names = list_literals(get_type_hints(official)["model"])
    dated = {name for name in names if name[-10:-8] == "20" or name.endswith("diarize")}
    assert names - dated <= set(iterate_well_known())


def test_every_official_value_of_include_is_known() -> None:
    names = sorted(list_literals(ResponseIncludable))
    change = convert_include(names, {})
    assert change.fields == {"include": ["message.output_text.logprobs"]}
    assert len(change.ignored) == len(names) - 1
