"""SGLang's own server serves the checkpoint because our package is installed."""

from collections.abc import Iterator

import openai
import pytest

from sglang_omni.models.ming.prompt import render_chat
from sglang_omni.models.ming.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.request import Message, TextPart
from sglang_omni.thinker.contract import ThinkerSettings
from sglang_omni.thinker.launch import environment
from tests.golden import TINY, load_case
from tests.server.chats import CHATS, answer_of, messages_of, whole
from tests.server.running import run_server

QUESTION = "How many apples are in the basket?"
STOCK = ("-m", "sglang.launch_server", "--model-path", str(TINY), "--device", "cpu")
CPU = (
    *("--dtype", "float32", "--attention-backend", "torch_native", "--grammar-backend", "none"),
    *("--max-total-tokens", "4096", "--mem-fraction-static", "0.5", "--log-level", "warning"),
)


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    variables = environment(ThinkerSettings(TINY), threads=1)
    with run_server(*STOCK, *CPU, ready="/health_generate", env=variables) as server:
        yield openai.OpenAI(base_url=server.api, api_key="none")


def test_the_stock_server_chats_with_the_prompt_of_the_released_model(
    client: openai.OpenAI,
) -> None:
    messages = [{"role": "user", "content": QUESTION}]
    answer = client.chat.completions.create(
        model="any", messages=messages, temperature=0, max_tokens=8
    )
    prompt = render_chat([Message("user", (TextPart(QUESTION),))])
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(ThinkerTokenizer(TINY).encode(prompt).ids)
    assert answer.choices[0].message.content


@pytest.mark.parametrize("name", CHATS)
def test_the_stock_server_sees_and_hears(client: openai.OpenAI, name: str) -> None:
    case = load_case(name)
    answer = client.chat.completions.create(
        model="any",
        messages=messages_of(case),
        temperature=0,
        max_tokens=len(case["generated_ids"]),
    )
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(case["input_ids"])
    assert whole(answer.choices[0].message.content or "") == answer_of(case)
