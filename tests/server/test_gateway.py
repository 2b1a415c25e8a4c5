"""SGLang's routers in front of the default server: what they forward, and what they read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.server.router import run_router
from tests.server.running import RunningServer

MODEL = "ming-omni"
QUESTION: Any = [{"role": "user", "content": "What is 17 + 25?"}]
ANSWER = "17 + 25 = 42. The answer is 42."


@pytest.fixture(scope="module", params=["sglang_router", "smg"])
def url(
    request: pytest.FixtureRequest,
    default_server: RunningServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    pytest.importorskip(request.param, reason="ci/stage.sh packages installs it")
    log: Path = tmp_path_factory.mktemp("router") / "router.log"
    with run_router(default_server.url, log, request.param) as running:
        yield running


@pytest.fixture(scope="module")
def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def test_chats_pass(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0)
    assert answer.choices[0].message.content == ANSWER
    stream = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, stream=True
    )
    texts = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert "".join(texts) == ANSWER


def test_text_completions_pass(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=8)
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 8


def test_model_responses_pass(client: openai.OpenAI) -> None:
    answer = client.responses.create(model=MODEL, input="What is 17 + 25?", temperature=0)
    assert answer.output_text == ANSWER


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert MODEL in [card.id for card in client.models.list()]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", b"{"),
        ("/v1/chat/completions", b'{"messages": 1}'),
        ("/v1/chat/completions", b'{"messages": [{"role": "user", "content": "\\ud800"}]}'),
        ("/v1/completions", b"[]"),
        ("/v1/completions", b'{"prompt": [[99999999]]}'),
        ("/v1/responses", b'{"input": {"a": 1}}'),
        ("/v1/embeddings", json.dumps({"model": MODEL, "input": "a"}).encode()),
        ("/v1/rerank", json.dumps({"query": "a", "documents": ["b"]}).encode()),
        ("/generate", json.dumps({"text": "a"}).encode()),
    ],
)
def test_what_is_refused_is_no_500(url: str, path: str, body: bytes) -> None:
    reply = httpx.post(f"{url}{path}", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= reply.status_code < 500, reply.text
