"""Text completions: prompts as text and tokens, echoes, log probabilities, streams and refusals."""

import json
from typing import Any

import httpx
import openai
import pytest

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.entrypoints.requests.completions import MAX_PROMPT_LOGPROBS
from sglang_omni.pipeline.request import Event, Finished, Started, TextDelta, Usage
from sglang_omni.protocol.completions import MAX_CHOICES
from tests.entrypoints.http.fake import FakeBackend, Served, hanging, playing

MODEL = "org/ming"
HI = tuple(b"hi")
END = 0


def post(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post("/v1/completions", json={"prompt": "hello you", **fields})


def choices_of(reply: httpx.Response) -> list[dict[str, Any]]:
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["choices"]
    return found


def chunks_of(reply: httpx.Response) -> list[dict[str, Any]]:
    assert reply.status_code == 200, reply.text
    *events, done = reply.text.removesuffix("\n\n").split("\n\n")
    assert done == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


def refused(reply: httpx.Response, status: int = 400) -> tuple[str, str]:
    assert reply.status_code == status, reply.text
    error = reply.json()["error"]
    return error["param"], error["message"]


def scored(*, prompt: tuple[TokenLogprob, ...] = ()) -> tuple[Event, ...]:
    """An answer "x" after a prompt, whose end is a special token."""
    return (
        Started(prompt),
        TextDelta("x", (TokenLogprob(ord("x"), -0.25, ((ord("x"), -0.25), (ord("y"), -1.5))),)),
        TextDelta("", (TokenLogprob(END, float("-inf")),)),
        Finished("stop", Usage(prompt_tokens=2, completion_tokens=2)),
    )


def test_a_text_is_continued_as_it_is(client: openai.OpenAI, backend: FakeBackend) -> None:
    answer = client.completions.create(model=MODEL, prompt="hello you")
    (request,) = backend.requests
    assert (request.messages, request.prompt_ids) == ((), tuple(b"hello you"))
    assert (request.sampling.max_tokens, request.sampling.top_logprobs) == (16, None)
    assert answer.object == "text_completion"
    assert answer.id == f"cmpl-{request.id}"
    (choice,) = answer.choices
    assert (choice.text, choice.finish_reason, choice.logprobs) == ("hello you ", "stop", None)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 7


def test_the_official_client_streams(client: openai.OpenAI) -> None:
    stream = client.completions.create(
        model=MODEL, prompt="hello you", stream=True, stream_options={"include_usage": True}
    )
    *chunks, last, usage = list(stream)
    assert [chunk.choices[0].text for chunk in chunks] == ["hello ", "you "]
    assert {chunk.object for chunk in chunks} == {"text_completion"}
    assert (last.choices[0].text, last.choices[0].finish_reason) == ("", "stop")
    assert usage.choices == []
    assert usage.usage is not None
    assert usage.usage.prompt_tokens == 7


@pytest.mark.parametrize(
    ("prompt", "ids"),
    [
        ("hi", [HI]),
        ([*HI], [HI]),
        (["hi", "a"], [HI, (97,)]),
        ([[*HI], [97]], [HI, (97,)]),
        (["hi", [97]], [HI, (97,)]),
    ],
)
def test_prompts_come_in_every_form(
    http: httpx.Client, backend: FakeBackend, prompt: Any, ids: list[Any]
) -> None:
    choices = choices_of(post(http, prompt=prompt))
    assert [request.prompt_ids for request in backend.requests] == ids
    assert [choice["text"] for choice in choices] == [bytes(one).decode() + " " for one in ids]


def test_each_prompt_has_n_choices_of_different_seeds(
    http: httpx.Client, backend: FakeBackend
) -> None:
    reply = post(http, prompt=["hi", "a"], n=2, best_of=2, seed=5, temperature=0.5)
    choices = choices_of(reply)
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    assert [choice["text"] for choice in choices] == ["hi ", "hi ", "a ", "a "]
    assert [request.sampling.seed for request in backend.requests] == [5, 6, 5, 6]
    assert len({request.id for request in backend.requests}) == 4
    # Each prompt counts once, each answer by itself: 5 tokens of text and 4 of sound.
    usage = reply.json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (14, 4 * 9)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 6
    assert reply.json()["seed_applies_to"] == []
    assert post(http, seed=5).json()["seed_applies_to"] == ["text"]


def test_choices_of_a_stream_are_numbered(http: httpx.Client) -> None:
    chunks = chunks_of(post(http, prompt=["hi", "a b"], n=2, stream=True))
    texts = ["", "", "", ""]
    for chunk in chunks:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["text"]
    assert texts == ["hi ", "hi ", "a b ", "a b "]
    assert sum(chunk["choices"][0]["finish_reason"] == "stop" for chunk in chunks) == 4


def test_sampling_reaches_the_thinker(http: httpx.Client, backend: FakeBackend) -> None:
    fields = {
        "temperature": 0.5,
        "top_p": 0.5,
        "top_k": 3,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "frequency_penalty": 0.2,
        "presence_penalty": 0.3,
    }
    rest = {"logit_bias": {"7": 2}, "stop": "x", "max_tokens": 3, "logprobs": 4, "priority": "low"}
    assert post(http, **fields, **rest).status_code == 200
    (request,) = backend.requests
    sampling = request.sampling
    assert {name: getattr(sampling, name) for name in fields} == fields
    assert (sampling.logit_bias, sampling.stop, sampling.max_tokens) == (((7, 2.0),), ("x",), 3)
    assert (sampling.top_logprobs, sampling.prompt_logprobs) == (4, False)
    assert request.priority == "low"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("prompt", "echo"),
    # A special token has no text but its name.
    [("hi", "hi"), ([*HI], "hi"), ([*HI, END], "hi<0>")],
)
def test_an_echo_precedes_the_answer(
    http: httpx.Client, prompt: Any, echo: str, stream: bool
) -> None:
    reply = post(http, prompt=prompt, echo=True, stream=stream)
    choices = [chunk["choices"][0] for chunk in chunks_of(reply)] if stream else choices_of(reply)
    text = "".join(choice["text"] for choice in choices)
    assert text.startswith(echo)
    assert text.endswith(" ")


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_have_an_entry_for_each_token(
    http: httpx.Client, backend: FakeBackend, stream: bool
) -> None:
    backend.script = playing(*scored())
    reply = post(http, prompt="hi", logprobs=2, stream=stream)
    if stream:
        found = [chunk["choices"][0]["logprobs"] for chunk in chunks_of(reply)]
        logprobs = {name: found[0][name] + found[1][name] for name in found[0]}
        assert found[2] is None
    else:
        logprobs = choices_of(reply)[0]["logprobs"]
    assert logprobs == {
        "tokens": ["x", "<0>"],
        "token_logprobs": [-0.25, -9999.0],
        "top_logprobs": [{"x": -0.25, "y": -1.5}, {"<0>": -9999.0}],
        "text_offset": [0, 1],
    }


PROMPT_LOGPROBS = (TokenLogprob(ord("i"), -0.5, ((ord("o"), -0.1),)),)


@pytest.mark.parametrize("stream", [False, True])
def test_an_echo_has_the_log_probabilities_of_the_prompt(
    http: httpx.Client, backend: FakeBackend, stream: bool
) -> None:
    backend.script = playing(*scored(prompt=PROMPT_LOGPROBS))
    reply = post(http, prompt="hi", echo=True, logprobs=1, max_tokens=1, stream=stream)
    sampling = backend.requests[0].sampling
    assert (sampling.prompt_logprobs, sampling.top_logprobs) == (True, 1)
    choices = [chunk["choices"][0] for chunk in chunks_of(reply)] if stream else choices_of(reply)
    first = choices[0]["logprobs"]
    assert first["tokens"][:2] == ["h", "i"]
    assert first["token_logprobs"][:2] == [None, -0.5]
    assert first["top_logprobs"][:2] == [None, {"o": -0.1, "i": -0.5}]
    assert first["text_offset"][:2] == [0, 1]
    later = choices[1]["logprobs"] if stream else {key: first[key][2:] for key in first}
    assert (later["tokens"][0], later["text_offset"][0]) == ("x", 2)


def test_without_likeliest_tokens_there_are_none(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(*scored(prompt=PROMPT_LOGPROBS))
    (choice,) = choices_of(post(http, prompt="hi", echo=True, logprobs=0))
    assert choice["logprobs"]["top_logprobs"] is None
    assert choice["logprobs"]["token_logprobs"] == [None, -0.5, -0.25, -9999.0]


@pytest.mark.parametrize("stream", [False, True])
def test_no_tokens_are_asked_for_to_score_a_prompt(
    http: httpx.Client, backend: FakeBackend, stream: bool
) -> None:
    backend.script = playing(*scored(prompt=PROMPT_LOGPROBS))
    fields = {"prompt": "hi", "echo": True, "logprobs": 1, "max_tokens": 0, "stream": stream}
    reply = post(http, **fields, **({"stream_options": {"include_usage": True}} if stream else {}))
    if stream:
        *chunks, last = chunks_of(reply)
        choices, usage = [chunk["choices"][0] for chunk in chunks], last["usage"]
    else:
        choices, usage = choices_of(reply), reply.json()["usage"]
    assert "".join(choice["text"] for choice in choices) == "hi"
    assert choices[0]["logprobs"]["tokens"] == ["h", "i"]
    assert choices[-1]["finish_reason"] == "length"
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (2, 0)


def test_parts_of_characters_are_told_as_bytes(http: httpx.Client, backend: FakeBackend) -> None:
    first, second = "é".encode()
    tokens = (TokenLogprob(second, -0.1), TokenLogprob(ord("x"), -0.2))
    backend.script = playing(Started(tokens), Finished("stop", Usage()))
    fields = {"prompt": [first, second, ord("x")], "echo": True, "logprobs": 0}
    (choice,) = choices_of(post(http, **fields))
    assert choice["text"] == "éx"
    assert choice["logprobs"]["tokens"] == ["bytes:\\xc3", "bytes:\\xa9", "x"]
    assert choice["logprobs"]["text_offset"] == [0, 0, 1]


def test_an_answer_that_is_left_ends_its_work(server: Served, http: httpx.Client) -> None:
    server.backend.script = hanging(TextDelta("a"))
    body = {"prompt": ["a", "b"], "n": 2, "stream": True}
    with http.stream("POST", "/v1/completions", json=body) as reply:
        next(reply.iter_raw())
        server.backend.wait_running(4)
    server.backend.wait_running(0)


def test_an_error_of_one_prompt_is_that_of_the_request(
    http: httpx.Client, backend: FakeBackend
) -> None:
    prompt = "a" * (8 * backend.context_length + 1)
    assert refused(post(http, prompt=["hi", prompt]))[0] == "prompt.1"
    assert refused(post(http, prompt=prompt))[0] == "prompt"
    assert backend.requests == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": ["a", ""]}, "prompt"),
        ({"prompt": ["a"] * (MAX_CHOICES + 1)}, "prompt"),
        ({"prompt": 7}, "prompt"),
        ({"prompt": [1.5]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": [None]}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": [[1], [[2]]]}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"prompt": [104, 256]}, "prompt.1"),
        ({"prompt": [104, -1]}, "prompt.1"),
        ({"prompt": [[104], [10**400]]}, "prompt.1.0"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 4097}, "max_tokens"),
        ({"best_of": 2}, "best_of"),
        ({"n": 2, "best_of": 1}, "best_of"),
        ({"n": 9}, "n"),
        ({"n": 8, "prompt": ["a", "b", "c"]}, "n"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"echo": "yes"}, "echo"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"seed": -1}, "seed"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"logit_bias": {"a": 1}}, "logit_bias.a.[key]"),
    ],
    ids=str,
)
def test_a_bad_field_is_named(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any], param: str
) -> None:
    named, message = refused(post(http, **fields))
    assert named == param
    assert message.startswith(f"{param}: ")
    assert backend.requests == []


def test_log_probabilities_of_prompts_are_bounded(http: httpx.Client) -> None:
    most = MAX_PROMPT_LOGPROBS // (21 * 2)
    fields = {"echo": True, "logprobs": 20, "n": 2}
    assert post(http, prompt=[97] * most, **fields).status_code == 200
    param, message = refused(post(http, prompt=[97] * (most + 1), **fields))
    assert param == "logprobs"
    assert str(most) in message
    # Without them a prompt may be longer.
    assert post(http, prompt=[97] * (most + 1), echo=True, n=2).status_code == 200


def test_another_model_is_not_found(http: httpx.Client) -> None:
    assert refused(post(http, model="o3"), 404)[0] == "model"


def test_a_large_body_is_answered(http: httpx.Client, backend: FakeBackend) -> None:
    ids = list(b"hello ") * 5_000
    assert post(http, prompt=ids, user="a").headers["x-ignored-fields"] == "user"
    assert backend.requests[0].prompt_ids == tuple(ids)
    assert refused(post(http, prompt=[*ids, 256]))[0] == f"prompt.{len(ids)}"


@pytest.mark.parametrize("path", ["/v1/completions", "/tokenize"])
def test_half_a_surrogate_pair_is_no_prompt(http: httpx.Client, path: str) -> None:
    json_type = {"content-type": "application/json"}
    reply = http.post(path, content=rb'{"prompt": ["a", "\ud800"]}', headers=json_type)
    assert refused(reply)[0] == "prompt.1"
