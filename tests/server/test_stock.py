"""SGLang's own server serves the checkpoint because our package is installed."""

import openai

from sglang_omni.models.ming.prompt import render_chat
from sglang_omni.models.ming.tokenizer import ThinkerTokenizer
from sglang_omni.pipeline.request import Message, TextPart
from sglang_omni.thinker.contract import ThinkerSettings
from sglang_omni.thinker.launch import environment
from tests.golden import TINY
from tests.server.running import run_server

QUESTION = "How many apples are in the basket?"
STOCK = ("-m", "sglang.launch_server", "--model-path", str(TINY), "--device", "cpu")
CPU = (
    *("--dtype", "float32", "--attention-backend", "torch_native", "--grammar-backend", "none"),
    *("--max-total-tokens", "4096", "--mem-fraction-static", "0.5", "--log-level", "warning"),
)


def test_the_stock_server_chats_with_the_prompt_of_the_released_model() -> None:
    variables = environment(ThinkerSettings(TINY), threads=1)
    with run_server(*STOCK, *CPU, ready="/health_generate", env=variables) as server:
        client = openai.OpenAI(base_url=server.api, api_key="none")
        answer = client.chat.completions.create(
            model="any",
            messages=[{"role": "user", "content": QUESTION}],
            temperature=0,
            max_tokens=8,
        )
    prompt = ThinkerTokenizer(TINY).encode(render_chat([Message("user", (TextPart(QUESTION),))]))
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(prompt)
    assert answer.choices[0].message.content
