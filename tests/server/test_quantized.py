"""The bundled model in four bits, made by the command and served with default settings."""

from pathlib import Path

import httpx
import pytest

from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from tests.server.running import run_server, serve_options

# Starts a server of its own.
pytestmark = pytest.mark.extended


def test_the_bundled_model_answers_in_four_bits(tmp_path: Path) -> None:
    assert main(["quantize", str(MING_MINI), str(tmp_path / "int4"), "--int4"]) == 0
    model = ("--model-path", str(tmp_path / "int4"))
    command = ("-m", "sglang_omni", "serve", "--version", "v1", *model, *serve_options())
    with run_server(*command, ready="/ready") as server:

        def ask(question: str) -> str:
            message = {"role": "user", "content": question}
            body = {"messages": [message], "temperature": 0, "max_tokens": 32}
            reply = httpx.post(f"{server.api}/chat/completions", json=body, timeout=60)
            assert reply.status_code == 200, reply.text
            return str(reply.json()["choices"][0]["message"]["content"])

        assert "12" in ask("What is 7 + 5?")
        assert "72" in ask("What is 9 times 8?")
        assert "Paris" in ask("What is the capital of France?")
