"""Requests that other programs send are answered, or refused, as `ci/clients/requests` says."""

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from ci.clients.request_files import Json, list_files, read, send
from sglang_omni.protocol.compat.model_names import build_model_names
from tests.entrypoints.http.fake import EVERYTHING, FakeBackend, serving

REQUESTS = {f"{file.stem}: {line['name']}": line for file in list_files() for line in read(file)}


class EnglishBackend(FakeBackend):
    """Has the name and a voice of the default model, and draws."""

    model = "ming-omni"
    model_names = build_model_names((model,), {}, strict=False)
    voices = (*FakeBackend.voices, "kumo")


@pytest.fixture(scope="module")
def english() -> Iterator[httpx.Client]:
    with (
        serving(backend=EnglishBackend()) as served,
        httpx.Client(base_url=served.url, timeout=10) as client,
    ):
        served.backend.capabilities = replace(EVERYTHING, speech_languages=("en",))
        yield client


@pytest.mark.parametrize("line", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_request_of_another_program(english: httpx.Client, line: Json) -> None:
    answer = send(english, line)
    assert answer.status_code == line.get("status", 200), answer.text
    assert answer.headers.get("X-Ignored-Fields", "") == line.get("ignored", "")
    if "param" in line:
        assert answer.json()["error"]["param"] == line["param"]
