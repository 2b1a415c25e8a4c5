"""What docs/speech.md says of fields, limits and answers is so."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.http.routes.speech_batch import MAX_ITEMS
from sglang_omni.protocol.speech import MAX_TURNS, SpeechBody, TurnBody
from tests.entrypoints.http.fake import Served
from tests.entrypoints.http.speaking import serving_speech

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "speech.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(found)


def block(language: str, text: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def speaking() -> Iterator[Served]:
    with serving_speech() as served:
        yield served


def speak(speaking: Served, body: dict[str, Any]) -> Any:
    reply = httpx.post(f"{speaking.url}/v1/audio/speech", json=body, timeout=20)
    assert reply.status_code == 200, reply.text
    return reply


def test_fields_of_the_file_exist() -> None:
    fields = re.findall(r"^\| `(\w+)` \|", section("The file"), re.MULTILINE)
    assert len(fields) > 4
    assert set(fields) <= SpeechBody.model_fields.keys()
    assert f"`{SpeechBody.model_fields['response_format'].default}` (the default)" in DOCUMENT


def test_the_verbose_answer_has_the_shape_that_is_shown(speaking: Served) -> None:
    example = json.loads(block("json", section("Timestamps")))
    command = block("bash", section("Timestamps"))
    (body,) = re.findall(r"-d '(.*)'", command)
    answer = speak(speaking, json.loads(body)).json()
    assert answer.keys() == example.keys()
    for name in ("segments", "words"):
        assert answer[name][0].keys() == example[name][0].keys()
    told = [segment["text"] for segment in example["segments"]]
    assert [segment["text"] for segment in answer["segments"]] == told
    words = [word["word"] for word in example["words"]]
    assert [word["word"] for word in answer["words"]][: len(words)] == words


def test_the_dialogue_is_spoken(speaking: Served) -> None:
    code = block("python", section("Several speakers"))
    (turns,) = re.findall(r'"input": (\[.*\])', code, re.DOTALL)
    turns = json.loads(re.sub(r",(\s*[\]}])", r"\1", turns))
    # Of this server, whose voices are others.
    named = [{**turn, "voice": "river"} if "voice" in turn else turn for turn in turns]
    assert len(named) == 3
    speak(speaking, {"input": named})


def test_limits_are_those_of_the_code() -> None:
    assert f"There may be {MAX_TURNS} turns" in DOCUMENT
    assert f"up to {MAX_ITEMS} `items`" in DOCUMENT
    for name in set(TurnBody.model_fields):
        assert f"`{name}`" in section("Several speakers")


def test_the_accuracy_is_that_of_the_result() -> None:
    path = ROOT / "benchmarks" / "results" / "word_times_cpu.json"
    sets = json.loads(path.read_text(encoding="utf-8"))["sets"]
    starts = [
        figures
        for name in ("everyday", "written_forms")
        for figures in (sets[name]["start"], sets[name]["corrected"]["start"])
    ]
    rows = re.findall(r"\| ([\d.]+) s \| ([\d.]+) s \|", section("Timestamps"))
    expected = [(f"{one['median_s']:.3f}", f"{one['p90_s']:.3f}") for one in starts]
    assert rows == expected
