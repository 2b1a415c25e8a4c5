"""Forms of a chat's answer on the running server, with the official client."""

import json
from typing import Any

import openai
import pytest

from tests.server.running import RunningServer


@pytest.fixture
def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api, api_key="none", max_retries=0)


def test_a_chat_keeps_to_a_schema_and_tells_its_probabilities(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"count": {"enum": [1, 2, 3]}},
        "required": ["count"],
        "additionalProperties": False,
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "count", "schema": schema}}
    answer = client.chat.completions.create(
        model="ming-omni",
        messages=[{"role": "user", "content": "How many apples?"}],
        response_format=form,
        logprobs=True,
        top_logprobs=2,
        max_tokens=60,
        n=2,
    )
    for choice in answer.choices:
        assert json.loads(choice.message.content or "")["count"] in (1, 2, 3)
        assert choice.logprobs is not None and choice.logprobs.content
        assert "".join(t.token for t in choice.logprobs.content) == choice.message.content


def test_a_chat_may_be_offered_functions(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    answer = client.chat.completions.create(
        model="ming-omni",
        messages=[{"role": "user", "content": "Look around."}],
        tools=tools,
        max_tokens=12,
        frequency_penalty=0.5,
    )
    assert answer.choices[0].finish_reason in ("length", "stop", "tool_calls")
    assert answer.usage is not None and answer.usage.prompt_tokens > 60
