"""SGLang's own server serves the checkpoint because our package is installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.request import TextPart
from tests.models.ming.prompt.test_chat import Turn
from tests.server.chats import CHATS, answer_of, messages_of, whole
from tests.server.router import run_router
from tests.server.running import run_server
from tests.testing.golden import TINY, load_case

pytestmark = pytest.mark.extended

QUESTION = "How many apples are in the basket?"
STOCK = ("-m", "sglang.launch_server", "--model-path", str(TINY), "--device", "cpu")
CPU = (
    *("--dtype", "float32", "--attention-backend", "torch_native", "--grammar-backend", "none"),
    *("--max-total-tokens", "4096", "--mem-fraction-static", "0.5", "--log-level", "warning"),
)


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    variables = build_environment(ThinkerSettings(TINY), threads=1)
    with run_server(*STOCK, *CPU, ready="/health_generate", env=variables) as server:
        yield openai.OpenAI(base_url=server.api, api_key="none")


def test_the_stock_server_chats_with_the_prompt_of_the_released_model(
    client: openai.OpenAI,
) -> None:
    messages: Any = [{"role": "user", "content": QUESTION}]
    answer = client.chat.completions.create(
        model="any", messages=messages, temperature=0, max_tokens=8
    )
    prompt = render_chat([Turn("user", (TextPart(QUESTION),))])
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(ThinkerTokenizer(TINY).encode(prompt).ids)
    assert answer.choices[0].message.content


@pytest.mark.parametrize("name", CHATS)
def test_the_stock_server_sees_and_hears(client: openai.OpenAI, name: str) -> None:
    case = load_case(name)
    messages: Any = messages_of(case)
    answer = client.chat.completions.create(
        model="any",
        messages=messages,
        temperature=0,
        max_tokens=len(case["generated_ids"]),
    )
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(case["input_ids"])
    assert whole(answer.choices[0].message.content or "") == answer_of(case)


def test_the_router_of_sglang_spreads_chats_over_stock_servers(
    client: openai.OpenAI, tmp_path: Path
) -> None:
    pytest.importorskip("sglang_router", reason="ci/stage.sh packages installs it")
    worker = str(client.base_url).removesuffix("/v1/")
    asked: Any = [{"role": "user", "content": QUESTION}]
    with run_router(worker, tmp_path / "router.log") as url:
        routed = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
        texts = [
            one.chat.completions.create(model="any", messages=asked, temperature=0, max_tokens=8)
            .choices[0]
            .message.content
            for one in (routed, client)
        ]
    assert texts[0]
    assert texts[0] == texts[1]
