"""Bodies of other programs become the server's own; what is lost on the way is told."""

from typing import Any

import pytest

from sglang_omni.protocol.compat.adapt import adapt, iterate_rules
from sglang_omni.protocol.compat.chat import CHAT_RULES
from sglang_omni.protocol.compat.field_rules import FieldRules, Ignored, Refused
from sglang_omni.protocol.compat.responses import CREATE_RESPONSE_RULES
from sglang_omni.protocol.compat.similar_names import find_similar_field
from sglang_omni.protocol.compat.speech import BATCH_RULES, ITEM_RULES, SPEECH_RULES
from sglang_omni.protocol.compat.transcription import TRANSCRIPTION_RULES
from sglang_omni.protocol.errors import InvalidRequest

SCHEMA = {"type": "object"}


def as_format(name: str) -> dict[str, Any]:
    named = {"name": name, "schema": SCHEMA}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def name_case(value: Any) -> str:
    """Return the name of a parameter, the same in every process."""
    return repr(sorted(value) if isinstance(value, set) else value)[:60]


def thinking(is_on: bool) -> dict[str, Any]:
    return {"chat_template_kwargs": {"enable_thinking": is_on}}


CHAT: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = [
    ({"model": "a", "n": 1}, {"model": "a", "n": 1}, set()),
    ({"user": "a", "store": False, "metadata": None}, {}, {"user"}),
    ({"n_": 1}, {"n_": 1}, set()),
    ({"extra_body": {"seed": 1, "n": 2, "user": "a"}, "n": 3}, {"n": 3, "seed": 1}, {"user"}),
    ({"max_new_tokens": 5}, {"max_tokens": 5}, set()),
    ({"max_new_tokens": 5, "max_tokens": 6}, {"max_tokens": 6}, {"max_new_tokens"}),
    ({"priority": 3}, {"priority": "low"}, set()),
    ({"priority": 0}, {"priority": "normal"}, set()),
    ({"priority": "high"}, {"priority": "high"}, set()),
    ({"priority": True}, {"priority": True}, set()),
    ({"service_tier": "priority"}, {"priority": "high"}, set()),
    ({"service_tier": "scale"}, {}, {"service_tier"}),
    ({"speaker": "a"}, {}, {"speaker"}),
    (
        {"modalities": ["audio"], "voice": "a", "audio": {"format": "pcm"}},
        {"modalities": ["audio"], "audio": {"format": "pcm16", "voice": "a"}},
        set(),
    ),
    ({"guided_json": SCHEMA}, as_format("guided_json"), set()),
    ({"guided_json": '{"type": "object"}'}, as_format("guided_json"), set()),
    ({"structured_outputs": {"json": SCHEMA}}, as_format("structured_outputs"), set()),
    (
        {"structured_outputs": {"json_object": True}},
        {"response_format": {"type": "json_object"}},
        set(),
    ),
    ({"structured_outputs": {"json": None}}, {}, set()),
    ({"response_format": {"type": "json_object", "schema": SCHEMA}}, as_format("schema"), set()),
    ({"enable_thinking": True}, thinking(True), set()),
    ({"thinking": False}, thinking(False), set()),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 9}},
        thinking(True),
        {"thinking.budget_tokens"},
    ),
    ({"chat_template_kwargs": {"thinking": True}}, thinking(True), set()),
    (
        {"chat_template_kwargs": {"a": 1, "é": 2}},
        {},
        {"chat_template_kwargs.a", "chat_template_kwargs"},
    ),
    (
        {"reasoning": {"effort": "low", "exclude": True}},
        {"reasoning_effort": "low"},
        {"reasoning.exclude"},
    ),
    ({"reasoning": {"enabled": False}}, thinking(False), set()),
    (
        {"stage_params": {"thinker": {"top_p": 0.5, "x": 1}, "talker": {}}, "top_p": 0.1},
        {"top_p": 0.1},
        {"stage_params.x"},
    ),
    (
        {"sampling_params_list": [{"top_k": 0, "max_tokens": 99_999, "seed": 1}]},
        {"seed": 1},
        set(),
    ),
    ({"sampling_params_list": []}, {}, set()),
    ({"messages": "a", "tools": 5, "audio": []}, {"messages": "a", "tools": 5, "audio": []}, set()),
]


@pytest.mark.parametrize(("body", "expected", "ignored"), CHAT, ids=name_case)
def test_fields_of_a_chat(body: Any, expected: Any, ignored: set[str]) -> None:
    adapted = adapt(CHAT_RULES, body)
    assert adapted.fields == expected
    assert adapted.ignored == ignored


PARTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "image", "image": "u"}, {"type": "image_url", "image_url": "u"}),
    ({"type": "audio", "audio": "u"}, {"type": "audio_url", "audio_url": "u"}),
    ({"type": "video", "video": ["a"]}, {"type": "video_url", "video_url": ["a"]}),
    ({"type": "input_text", "text": "a"}, {"type": "text", "text": "a"}),
    ({"type": "refusal", "refusal": "a"}, {"type": "text", "text": "a"}),
    (
        {"type": "input_image", "image_url": "u", "detail": "low"},
        {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
    ),
    ({"type": "hologram", "hologram": 1}, {"type": "hologram", "hologram": 1}),
    ({"type": 5}, {"type": 5}),
]


@pytest.mark.parametrize(("part", "expected"), PARTS)
def test_parts_of_a_message(part: Any, expected: Any) -> None:
    adapted = adapt(CHAT_RULES, {"messages": [{"role": "user", "content": [part, "text"]}]})
    assert adapted.fields["messages"][0]["content"] == [expected, "text"]
    assert adapted.ignored == frozenset()


SPEECH: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = [
    ({"speaker": "a", "stream": True}, {"voice": "a", "stream": True}, set()),
    ({"speaker": "a", "voice": "a"}, {"voice": "a"}, set()),
    ({"speaker": "a", "voice": "b"}, {"voice": "b"}, {"speaker"}),
    ({"language": "Chinese"}, {"language": "zh"}, set()),
    ({"language": "en_US"}, {"language": "en"}, set()),
    ({"language": "Auto", "task_type": "CustomVoice"}, {}, set()),
    ({"language": "French"}, {"language": "French"}, set()),
    ({"references": []}, {}, set()),
    (
        {"references": [{"data": "QUJD", "media_type": "audio/mpeg", "vq_codes": [1]}]},
        {"ref_audio": "data:audio/mpeg;base64,QUJD"},
        {"references.vq_codes"},
    ),
    (
        {"references": [{"audio": "u", "text": "a"}], "ref_text": "b"},
        {"ref_audio": "u", "ref_text": "b"},
        set(),
    ),
    ({"references": [{"audio": "u"}], "ref_audio": "v"}, {"ref_audio": "v"}, {"references"}),
    (
        {"ref_audio": {"data": "QQ==", "format": "mp3"}},
        {"ref_audio": "data:audio/mp3;base64,QQ=="},
        set(),
    ),
    ({"ref_audio": {"url": "u"}, "task_type": "Base"}, {"ref_audio": "u"}, set()),
    ({"stage_params": {"cfg": 2, "other": 1}}, {"cfg": 2}, {"stage_params.other"}),
    ({"stage_params": {"tts": {"sigma": 1}}, "sigma": 2}, {"sigma": 2}, set()),
    ({"extra_params": {"speed": 2}}, {"speed": 2}, set()),
    ({"timestamp_granularities": ["segment", "word"]}, {"timestamps": "word"}, set()),
    ({"timestamp_granularities": ["segment"]}, {"timestamps": "segment"}, set()),
    (
        {"timestamp_granularities": ["segment"], "timestamps": "word"},
        {"timestamps": "word"},
        {"timestamp_granularities"},
    ),
    ({"response_format": "verbose_json"}, {"verbose": True}, set()),
    ({"response_format": "mp3"}, {"response_format": "mp3"}, set()),
    (
        {"input": [{"speaker": "a", "input": "b", "language": "English"}]},
        {"input": [{"voice": "a", "text": "b", "language": "en"}]},
        set(),
    ),
]


@pytest.mark.parametrize(("body", "expected", "ignored"), SPEECH, ids=name_case)
def test_fields_of_speech(body: Any, expected: Any, ignored: set[str]) -> None:
    adapted = adapt(SPEECH_RULES, body)
    assert adapted.fields == expected
    assert adapted.ignored == ignored


@pytest.mark.parametrize("rules", [BATCH_RULES, ITEM_RULES])
def test_a_batch_does_not_stream(rules: FieldRules) -> None:
    assert adapt(rules, {"stream": False}).fields == {}
    with pytest.raises(InvalidRequest) as raised:
        adapt(rules, {"stream": True})
    assert raised.value.param == "stream"


@pytest.mark.parametrize(
    ("rules", "body", "param"),
    [
        (CHAT_RULES, {"extra_body": 1}, "extra_body"),
        (CHAT_RULES, {"sampling_params_list": {}}, "sampling_params_list"),
        (CHAT_RULES, {"stage_params": {"thinker": 1}}, "stage_params"),
        (CHAT_RULES, {"stage_sampling": 1}, "stage_sampling"),
        (CHAT_RULES, {"guided_json": "{"}, "guided_json"),
        (CHAT_RULES, {"guided_json": SCHEMA, "response_format": {"type": "x"}}, "guided_json"),
        (CHAT_RULES, {"structured_outputs": 1}, "structured_outputs"),
        (CHAT_RULES, {"structured_outputs": {"regex": "a"}}, "structured_outputs"),
        (CHAT_RULES, {"reasoning": "low"}, "reasoning"),
        (
            CHAT_RULES,
            {"messages": [{}, {"function_call": {"name": "f"}}]},
            "messages.1.function_call",
        ),
        (SPEECH_RULES, {"references": "a"}, "references"),
        (SPEECH_RULES, {"references": [{}]}, "references"),
        (SPEECH_RULES, {"stage_params": 1}, "stage_params"),
        (SPEECH_RULES, {"task_type": "Song"}, "task_type"),
    ],
)
def test_what_cannot_be_converted_is_named(rules: FieldRules, body: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        adapt(rules, body)
    assert raised.value.param == param
    assert raised.value.message.startswith(f"{param}: ")


@pytest.mark.parametrize("body", [None, [], "a", 5, [{"user": "a"}]])
def test_what_is_no_object_stays_as_it_is(body: Any) -> None:
    assert adapt(SPEECH_RULES, body).fields == body


def test_a_body_is_not_changed() -> None:
    body = {"messages": [{"role": "user", "content": "a", "name": "b"}], "user": "c"}
    assert adapt(CHAT_RULES, body).ignored == {"messages.name", "user"}
    assert body == {"messages": [{"role": "user", "content": "a", "name": "b"}], "user": "c"}


def test_neutral_values_are_told_apart_by_type() -> None:
    rules = FieldRules(
        frozenset(), (Ignored("a", "x", "y", (0,)), Refused("b", "x", "y", (False,)))
    )
    assert adapt(rules, {"a": False}).ignored == {"a"}
    assert adapt(rules, {"a": 0.0, "b": False}).ignored == frozenset()
    with pytest.raises(InvalidRequest):
        adapt(rules, {"b": 0})


@pytest.mark.parametrize(
    "rules",
    [CHAT_RULES, CREATE_RESPONSE_RULES, SPEECH_RULES, BATCH_RULES, TRANSCRIPTION_RULES],
)
def test_a_field_has_one_rule(rules: FieldRules) -> None:
    paths = [path for path, _ in iterate_rules(rules)]
    assert sorted(paths) == sorted(set(paths))


@pytest.mark.parametrize(
    ("path", "similar"),
    [
        (("temprature",), "temperature"),
        (("max_token",), "max_tokens"),
        (("messages", 0, "contnt"), "content"),
        (("tools", 3, "function", "discription"), "description"),
        (("zzz",), None),
        (("a" * 1000,), None),
        (("logit_bias", "temprature"), None),
    ],
)
def test_the_nearest_field_is_found(path: tuple[str | int, ...], similar: str | None) -> None:
    assert find_similar_field(CHAT_RULES, path) == similar
