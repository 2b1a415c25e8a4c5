"""Models, voices, `/health`, `/ready`; and what the API process may import."""

import subprocess
import sys

import httpx
import openai
import pytest

from tests.entrypoints.http.fake import FakeBackend


def test_the_served_model_is_listed_and_found(client: openai.OpenAI) -> None:
    listed = client.models.list().data[0]
    assert listed.id == "org/ming"
    assert client.models.retrieve("org/ming") == listed


def test_openais_names_are_found_and_not_listed(http: httpx.Client) -> None:
    (card,) = http.get("/v1/models").json()["data"]
    assert (card["root"], card["parent"]) == ("org/ming", None)
    alias = http.get("/v1/models/tts-1").json()
    assert (alias["id"], alias["root"], alias["parent"]) == ("tts-1", "org/ming", "org/ming")


def test_another_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("other")
    assert missing.value.code == "model_not_found"


def test_ready_says_which_engine_is_not(http: httpx.Client, backend: FakeBackend) -> None:
    reply = http.get("/ready")
    assert reply.status_code == 200
    assert reply.json() == {
        "status": "ready",
        "engines": {"talker": {"state": "ready", "steps": 3}},
    }
    backend.ready = False
    reply = http.get("/ready")
    assert reply.status_code == 503
    assert reply.json() == {
        "status": "not_ready",
        "engines": {"talker": {"state": "starting", "steps": 3}},
    }


def test_the_server_is_alive_while_it_is_not_ready(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.ready = False
    reply = http.get("/health")
    assert reply.status_code == 200
    assert reply.json()["status"] == "alive"
    assert reply.json()["engines"]["talker"]["state"] == "starting"


def test_the_api_imports_no_model_runtime() -> None:
    code = (
        "import sys, sglang_omni.entrypoints.http.app\n"
        "print([name for name in ('torch', 'transformers', 'sglang') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
