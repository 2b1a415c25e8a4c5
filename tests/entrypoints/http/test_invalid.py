"""What is refused, and that the refusal names the field."""

import json
from typing import Any

import httpx
import openai
import pytest

from tests.entrypoints.http.fake import EVERYTHING, FakeBackend

CHAT: dict[str, Any] = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}]}
SPEECH = {"model": "org/ming", "input": "hello"}
SPOKEN = {"modalities": ["text", "audio"]}
PAST = {"id": "a", "transcript": "hi"}


def user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def turns(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [*messages, {"role": "user", "content": "so?"}]}


def part(kind: str) -> dict[str, Any]:
    return user([{"type": "text", "text": "see"}, {"type": kind, kind: {"url": "http://x/y"}}])


TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
CALLED: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "look"}}
BROKEN = {**CALLED, "function": {"name": "look", "arguments": "not JSON"}}
CALL_AT = "messages.0.tool_calls.0."
LISTED = {"name": "look", "parameters": {"type": "array"}}


def calling(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def allowing(*names: str) -> dict[str, Any]:
    tools = [calling(name) for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}


CHAT_CASES: list[tuple[dict[str, Any], str]] = [
    ({"model": 3}, "model"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": ["hello"]}, "messages.0"),
    (user(None), "messages.0.content"),
    (user(""), "messages.0.content"),
    (user(" \n"), "messages.0.content"),
    (user([]), "messages.0.content"),
    (user(7), "messages.0.content"),
    (user([{"type": "text"}]), "messages.0.content.0.text"),
    (user([{"type": "text", "text": 1}]), "messages.0.content.0.text"),
    (user([{"type": "text", "text": "a", "style": "b"}]), "messages.0.content.0.style"),
    (part("file"), "messages.0.content.1.type"),
    (turns({"content": "a"}), "messages.0.role"),
    (turns({"role": "tool", "content": "a"}), "messages.0"),
    (turns({"role": "tool", "content": "a", "tool_call_id": "x"}), "messages.0.tool_call_id"),
    (turns({"role": "user", "content": "a", "tool_call_id": "x"}), "messages.0.tool_call_id"),
    (turns({"role": "assistant", "tool_calls": [CALLED | {"id": ""}]}), CALL_AT + "id"),
    (turns({"role": "assistant", "tool_calls": [BROKEN]}), CALL_AT + "function.arguments"),
    (turns({"role": "assistant"}), "messages.0.content"),
    (turns({"role": "assistant", "audio": {"id": "a"}}), "messages.0.audio.id"),
    (turns({"role": "system", "content": "a", "audio": PAST}), "messages.0.audio"),
    (turns({"role": "user", "content": "a", "tool_calls": []}), "messages.0.tool_calls"),
    ({"messages": [{"role": "system", "content": "a"}]}, "messages"),
    ({"modalities": []}, "modalities"),
    ({"modalities": "text"}, "modalities"),
    ({"modalities": ["text", "video"]}, "modalities.1"),
    ({"modalities": ["text", "text"]}, "modalities"),
    ({"audio": {"voice": "river", "format": "wav"}}, "audio"),
    ({**SPOKEN, "audio": {"format": "midi"}}, "audio.format"),
    ({**SPOKEN, "audio": {"format": "pcm8"}}, "audio.format"),
    ({**SPOKEN, "audio": {"format": "pcm24"}, "stream": True}, "audio.format"),
    ({**SPOKEN, "audio": {"voice": "sea"}}, "audio.voice"),
    ({**SPOKEN, "audio": {"voice": ""}}, "audio.voice"),
    ({**SPOKEN, "audio": {"voice": {"name": "river"}}}, "audio.voice"),
    ({**SPOKEN, "audio": {"sample_rate": 7999}}, "audio.sample_rate"),
    ({**SPOKEN, "audio": {"sample_rate": 48_001}}, "audio.sample_rate"),
    ({**SPOKEN, "audio": {"sample_rate": 24_000.5}}, "audio.sample_rate"),
    ({**SPOKEN, "audio": {"speed": 2}}, "audio.speed"),
    ({"stream": "yes"}, "stream"),
    ({"stream": 1}, "stream"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"stream": True, "stream_options": {"usage": True}}, "stream_options.usage"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": "0.5"}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"top_p": 1.1}, "top_p"),
    ({"top_k": 0}, "top_k"),
    ({"top_k": -2}, "top_k"),
    ({"top_k": 1.5}, "top_k"),
    ({"min_p": -0.1}, "min_p"),
    ({"min_p": 1.1}, "min_p"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": True}, "max_tokens"),
    ({"max_tokens": 4097}, "max_tokens"),
    ({"max_completion_tokens": 4097}, "max_completion_tokens"),
    ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ({"stop": ""}, "stop.0"),
    ({"stop": ["a", 1]}, "stop.1"),
    ({"seed": -1}, "seed"),
    ({"seed": 2**63}, "seed"),
    ({"seed": "1"}, "seed"),
    ({"n": 9}, "n"),
    ({"n": 0}, "n"),
    ({"n": True}, "n"),
    ({"chat_template_kwargs": {"enable_thinking": "yes"}}, "chat_template_kwargs.enable_thinking"),
    ({"chat_template_kwargs": 1}, "chat_template_kwargs"),
    ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
    ({"tools": [{**TOOL, "function": {"name": "a b"}}]}, "tools.0.function.name"),
    ({"tools": [{**TOOL, "function": LISTED}]}, "tools.0.function.parameters"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": "sometimes"}, "tool_choice.type"),
    ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice.function"),
    ({"tools": [TOOL], "tool_choice": calling("listen")}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": allowing("look", "listen")}, "tool_choice"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"frequency_penalty": 2.1}, "frequency_penalty"),
    ({"presence_penalty": -2.1}, "presence_penalty"),
    ({"logit_bias": {"mill": 1}}, "logit_bias.mill.[key]"),
    ({"logit_bias": {"7": 101}}, "logit_bias.7"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"reasoning_effort": "endless"}, "reasoning_effort"),
    ({"guided_regex": "a+"}, "guided_regex"),
]

SPEECH_CASES: list[tuple[dict[str, Any], str]] = [
    ({"input": None}, "input"),
    ({"input": ""}, "input"),
    ({"input": " \t\n"}, "input"),
    ({"input": 5}, "input"),
    ({"input": []}, "input"),
    ({"input": ["a"]}, "input.0"),
    ({"voice": "sea"}, "voice"),
    ({"voice": ""}, "voice"),
    ({"voice": 1}, "voice"),
    ({"voice": {"id": "sea"}}, "voice"),
    ({"voice": {"id": 1}}, "voice"),
    ({"voice": {}}, "voice"),
    ({"voice": "../river"}, "voice"),
    ({"response_format": "midi"}, "response_format"),
    ({"response_format": "pcm16"}, "response_format"),
    ({"stream_format": "raw"}, "stream_format"),
    ({"speed": 4.5}, "speed"),
    ({"speed": 0.2}, "speed"),
    ({"instructions": {"mood": "glad"}}, "instructions.mood"),
    ({"instructions": {"style": ""}}, "instructions.style"),
    ({"task": "opera"}, "task"),
    ({"task": "sound", "voice": "prompt"}, "voice"),
    ({"task": "sound", "instructions": "loud"}, "instructions"),
    ({"response_format": "mp3", "sample_rate": 44_000}, "sample_rate"),
    ({"response_format": "opus", "sample_rate": 44_100}, "sample_rate"),
    ({"ref_text": "Hello."}, "ref_text"),
    ({"voice": "prompt", "ref_audio": "data:,"}, "ref_audio"),
    ({"cfg": 11}, "cfg"),
    ({"max_seconds": 0}, "max_seconds"),
    ({"speed": "1"}, "speed"),
    ({"instructions": 7}, "instructions"),
    ({"seed": -1}, "seed"),
    ({"seed": 2**63}, "seed"),
    ({"sample_rate": 0}, "sample_rate"),
    ({"stream": "yes"}, "stream"),
    ({"voice": "river", "speaks": "river"}, "speaks"),
]


@pytest.fixture(autouse=True)
def able(backend: FakeBackend) -> None:
    """Nothing is refused for what the family cannot do."""
    backend.capabilities = EVERYTHING


def refusal(reply: httpx.Response, status: int = 400) -> dict[str, Any]:
    """The envelope's content, once its shape is checked."""
    assert reply.status_code == status, reply.text
    assert reply.headers["x-request-id"]
    body = reply.json()
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"message", "type", "param", "code"}
    assert body["error"]["type"] == "invalid_request_error"
    return body["error"]


def case_id(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)[:50]


@pytest.mark.parametrize(("change", "param"), CHAT_CASES, ids=case_id)
def test_a_bad_chat_field_is_named(
    http: httpx.Client, backend: FakeBackend, change: dict[str, Any], param: str
) -> None:
    error = refusal(http.post("/v1/chat/completions", json={**CHAT, **change}))
    assert error["param"] == param
    assert error["message"].startswith(f"{param}: ")
    assert backend.requests == []


@pytest.mark.parametrize(("change", "param"), SPEECH_CASES, ids=case_id)
def test_a_bad_speech_field_is_named(
    http: httpx.Client, backend: FakeBackend, change: dict[str, Any], param: str
) -> None:
    error = refusal(http.post("/v1/audio/speech", json={**SPEECH, **change}))
    assert error["param"] == param
    assert error["message"].startswith(f"{param}: ")
    assert backend.requests == []


@pytest.mark.parametrize(
    ("path", "change", "code"),
    [
        ("chat/completions", {"function": []}, "unknown_parameter"),
        ("chat/completions", {"functions": [{"name": "f"}]}, "unsupported_parameter"),
        ("chat/completions", {"messages": None}, "missing_required_parameter"),
        ("chat/completions", {"top_p": 7}, "invalid_value"),
        ("chat/completions", {**SPOKEN, "audio": {"voice": "sea"}}, "voice_not_found"),
        ("audio/speech", {"voice": "sea"}, "voice_not_found"),
    ],
)
def test_the_code_tells_the_kinds_of_refusal_apart(
    http: httpx.Client, path: str, change: dict[str, Any], code: str
) -> None:
    base = CHAT if path.startswith("chat") else SPEECH
    assert refusal(http.post(f"/v1/{path}", json={**base, **change}))["code"] == code


def test_an_unknown_part_is_told_those_that_are_known(http: httpx.Client) -> None:
    error = refusal(http.post("/v1/chat/completions", json={**CHAT, **part("file")}))
    assert all(kind in error["message"] for kind in ("image_url", "input_audio", "video_url"))


def test_a_refused_format_lists_those_that_work(http: httpx.Client) -> None:
    speech = refusal(http.post("/v1/audio/speech", json={**SPEECH, "response_format": "midi"}))
    assert "'wav', 'pcm', 'mp3', 'opus', 'aac' or 'flac'" in speech["message"]
    body = {**CHAT, **SPOKEN, "audio": {"format": "midi"}}
    chat = refusal(http.post("/v1/chat/completions", json=body))
    assert "'wav', 'pcm16', 'mp3', 'opus', 'aac' or 'flac'" in chat["message"]


@pytest.mark.parametrize(("path", "body"), [("chat/completions", CHAT), ("audio/speech", SPEECH)])
@pytest.mark.parametrize("model", ["o3", ""])
def test_another_model_is_not_found(
    http: httpx.Client, path: str, body: dict[str, Any], model: str
) -> None:
    error = refusal(http.post(f"/v1/{path}", json={**body, "model": model}), 404)
    assert (error["param"], error["code"]) == ("model", "model_not_found")


@pytest.mark.parametrize("path", ["chat/completions", "audio/speech"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'"a"', b"null", b"\xff\xfe\xfd", b"[" * 100_000, b"9" * 5000],
    ids=lambda content: repr(content[:5]),
)
def test_a_body_that_is_no_json_object_is_refused(
    http: httpx.Client, path: str, content: bytes
) -> None:
    json_type = {"content-type": "application/json"}
    assert refusal(http.post(f"/v1/{path}", content=content, headers=json_type))["param"] is None


GENERIC = (None, "", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded")


def typed(media_type: str | None) -> dict[str, str]:
    return {} if media_type is None else {"Content-Type": media_type}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", CHAT),
        ("audio/speech", SPEECH),
        ("audio/speech/batch", {"model": "org/ming", "items": [{"input": "hello"}]}),
        ("audio/normalize", {"input": "hello"}),
    ],
)
@pytest.mark.parametrize(
    "media_type", [*GENERIC, "text/plain; charset=utf-8", "application/a+json"]
)
def test_json_is_read_from_clients_that_do_not_call_it_json(
    http: httpx.Client, path: str, body: dict[str, Any], media_type: str | None
) -> None:
    content = b" \n" + json.dumps(body).encode()
    assert http.post(f"/v1/{path}", content=content, headers=typed(media_type)).status_code == 200


@pytest.mark.parametrize("media_type", GENERIC)
@pytest.mark.parametrize(
    ("content", "message"),
    [(b'{"input": "a",}', "not valid JSON"), (b"{}", "input: Field required")],
)
def test_what_is_wrong_with_such_a_body_is_told_like_of_any_other(
    http: httpx.Client, media_type: str | None, content: bytes, message: str
) -> None:
    reply = http.post("/v1/audio/speech", content=content, headers=typed(media_type))
    assert message in refusal(reply)["message"]


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("application/x-www-form-urlencoded", b"model=org%2Fming&input=hello"),
        ("application/x-www-form-urlencoded", b"[1]"),
        ("application/x-www-form-urlencoded", b""),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("application/xml", b"<a/>"),
    ],
)
def test_a_body_of_another_type_is_told_what_to_send(
    http: httpx.Client, media_type: str, content: bytes
) -> None:
    reply = http.post("/v1/audio/speech", content=content, headers={"Content-Type": media_type})
    error = refusal(reply, 415)
    assert error["code"] == "unsupported_media_type"
    assert "send JSON with 'Content-Type: application/json'" in error["message"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the body is empty; send a JSON object"),
        (b"[]", "the body must be a JSON object"),
        (b'"a"', "the body must be a JSON object"),
    ],
)
def test_a_body_that_is_no_object_is_told_so(
    http: httpx.Client, content: bytes, message: str
) -> None:
    assert refusal(http.post("/v1/audio/speech", content=content))["message"] == message


def test_malformed_json_has_a_code_of_its_own(http: httpx.Client) -> None:
    json_type = {"content-type": "application/json"}
    reply = http.post("/v1/audio/speech", content=b'{"input": "a",}', headers=json_type)
    assert refusal(reply)["code"] == "invalid_json"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(http: httpx.Client, value: str) -> None:
    content = f'{{"model": "org/ming", "messages": [], "temperature": {value}}}'
    content = content.replace("[]", '[{"role": "user", "content": "a"}]')
    json_type = {"content-type": "application/json"}
    reply = http.post("/v1/chat/completions", content=content, headers=json_type)
    assert refusal(reply)["param"] == "temperature"


def test_half_a_surrogate_pair_is_no_text(http: httpx.Client) -> None:
    json_type = {"content-type": "application/json"}
    content = rb'{"model": "org/ming", "input": "\ud800"}'
    reply = http.post("/v1/audio/speech", content=content, headers=json_type)
    assert refusal(reply)["param"] == "input"


def test_the_official_client_raises_its_own_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(**CHAT, n=9)
    assert (bad.value.param, bad.value.code) == ("n", "invalid_value")
    with pytest.raises(openai.NotFoundError):
        client.audio.speech.create(model="tts-9", voice="river", input="a")
