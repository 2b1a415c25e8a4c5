"""Text completions, tokens and load figures on the bundled model, as gateways and lm-eval ask."""

from typing import Any

import httpx
import openai
import pytest

from sglang_omni.entrypoints.cli.reference import create_documented_app, list_routes
from tests.server.running import HTTP, RunningServer, wait_until

QUESTION: Any = [{"role": "user", "content": "What is your name?"}]
TOKENS = 12


@pytest.fixture(scope="module")
def client(default_server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=default_server.api, api_key="none", max_retries=0)


def post(server: RunningServer, path: str, body: dict[str, Any]) -> Any:
    reply = httpx.post(f"{server.url}{path}", json=body, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.fixture(scope="module")
def prompt(default_server: RunningServer) -> list[int]:
    """The tokens of a chat's prompt."""
    tokens: list[int] = post(default_server, "/tokenize", {"messages": QUESTION})["tokens"]
    return tokens


@pytest.fixture(scope="module")
def answer(client: openai.OpenAI) -> str:
    chat = client.chat.completions.create(
        model="ming-omni",
        messages=QUESTION,
        max_tokens=TOKENS,
    )
    return chat.choices[0].message.content or ""


def test_the_prompt_of_a_chat_is_continued_like_the_chat(
    default_server: RunningServer, client: openai.OpenAI, prompt: list[int], answer: str
) -> None:
    assert answer
    text = post(default_server, "/detokenize", {"tokens": prompt})["prompt"]
    assert "What is your name?" in text
    assert post(default_server, "/v1/tokenize", {"prompt": text})["tokens"] == prompt
    for one in (prompt, text, [prompt], [text]):
        done = client.completions.create(model="ming-omni", prompt=one, max_tokens=TOKENS)
        assert done.choices[0].text == answer
        assert done.usage is not None
        assert done.usage.prompt_tokens == len(prompt)
    stream = client.completions.create(
        model="ming-omni", prompt=prompt, max_tokens=TOKENS, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == answer


@pytest.mark.parametrize("max_tokens", [0, 1])
def test_an_answer_is_scored_as_lm_eval_does(
    default_server: RunningServer,
    client: openai.OpenAI,
    prompt: list[int],
    answer: str,
    max_tokens: int,
) -> None:
    continuation = post(default_server, "/tokenize", {"prompt": answer})["tokens"]
    wrong = [*reversed(continuation)]
    scored = client.completions.create(
        model="ming-omni",
        prompt=[[*prompt, *continuation], [*prompt, *wrong]],
        max_tokens=max_tokens,
        echo=True,
        logprobs=1,
        temperature=0,
        seed=1234,
    )
    sums = []
    for choice in scored.choices:
        logprobs = choice.logprobs
        assert logprobs is not None
        values, tops = logprobs.token_logprobs, logprobs.top_logprobs
        assert values is not None
        assert tops is not None
        assert len(values) == len(tops) == len(prompt) + len(continuation) + max_tokens
        end = len(values) - max_tokens
        sums.append(sum(values[len(prompt) : end]))
        is_greedy = all(
            value == max(top.values())
            for value, top in zip(values[len(prompt) : end], tops[len(prompt) : end], strict=True)
        )
        # The model's own answer is what it finds likeliest, token by token.
        assert is_greedy == (choice.index == 0)
    assert sums[0] > sums[1]


def test_a_long_prompt_is_refused_by_name(default_server: RunningServer) -> None:
    info = HTTP.get(f"{default_server.url}/server_info").json()
    body = {"prompt": [5] * info["context_length"]}
    error = httpx.post(f"{default_server.api}/completions", json=body).json()["error"]
    assert (error["param"], error["code"]) == ("prompt", "context_length_exceeded")


def test_an_empty_vocabulary_entry_is_no_token(default_server: RunningServer) -> None:
    body = {"prompt": [10**6]}
    reply = httpx.post(f"{default_server.api}/completions", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "prompt.0")


def test_the_load_is_that_of_the_thinker(default_server: RunningServer) -> None:
    def load() -> dict[str, Any]:
        (found,) = HTTP.get(f"{default_server.api}/loads").json()["loads"]
        return dict(found)

    wait_until(lambda: load()["max_total_num_tokens"] > 0, 5, "the figures of the thinker")
    thinker = default_server.engine("thinker")
    assert load()["max_total_num_tokens"] == thinker["counters"]["kv_tokens_capacity"]
    assert load()["max_running_requests"] == thinker["info"]["max_running_requests"]


def test_every_page_answers_head(default_server: RunningServer) -> None:
    names = (name.strip("`") for name, _ in list_routes(create_documented_app()))
    paths = [name.removeprefix("GET ") for name in names if name.startswith("GET ")]
    for path in [path for path in paths if "{" not in path]:
        head = HTTP.head(f"{default_server.url}{path}")
        assert (head.status_code, head.content) == (
            HTTP.get(default_server.url + path).status_code,
            b"",
        )
