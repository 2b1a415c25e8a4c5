"""`/v1/audio/normalize`: what will be spoken for a text."""

from typing import Any

import httpx
import pytest

from sglang_omni.models.speech_text import ReadingOptions
from sglang_omni.protocol.speech import MAX_PREVIEW_CHARACTERS
from tests.entrypoints.http.fake import EVERYTHING, FakeBackend, serving
from tests.entrypoints.http.middleware.test_auth import LOCKED
from tests.testing.needs import needs_rules


def preview(http: httpx.Client, text: str, **fields: Any) -> dict[str, Any]:
    reply = http.post("/v1/audio/normalize", json={"input": text, **fields})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


@needs_rules
def test_the_words_and_the_forms_are_told(http: httpx.Client) -> None:
    assert preview(http, "Meet me at 3:30pm here.") == {
        "text": "Meet me at three thirty PM here.",
        "readings": [{"written": "3:30pm", "class": "time", "spoken": "three thirty PM"}],
        "unspoken": [],
    }


@needs_rules
@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        ("12", {}, "twelve"),
        ("12", {"language": "zh"}, "十二"),
        ("Use SQL 2", {"lexicon": {"SQL": "sequel"}}, "Use sequel two"),
        ("Use SQL 2", {"normalization": "none"}, "Use SQL 2"),
        ("<speak>A <sub alias='bee'>B</sub> 2</speak>", {}, "A bee two"),
        ("<speak>A <sub alias='bee'>B</sub> 2</speak>", {"normalization": "none"}, "A bee 2"),
    ],
)
def test_the_options_are_those_of_speech(
    http: httpx.Client, text: str, fields: dict[str, Any], words: str
) -> None:
    assert preview(http, text, **fields)["text"] == words


@needs_rules
def test_an_element_of_ssml_is_a_form(http: httpx.Client) -> None:
    found = preview(http, "<speak>A <sub alias='bee'>B</sub></speak>")
    assert found["readings"] == [{"written": "B", "class": "SSML", "spoken": "bee"}]


@needs_rules
def test_rules_of_the_reference_are_not_explained(
    http: httpx.Client, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "reading", ReadingOptions("reference"))
    found = preview(http, "It is 12 today.")
    assert (found["text"], found["readings"]) == ("It is twelve today.", [])


def test_words_that_cannot_be_spoken_are_listed(http: httpx.Client, backend: FakeBackend) -> None:
    backend.capabilities = EVERYTHING
    assert preview(http, "Hello Привет, שלום!")["unspoken"] == ["Привет", "שלום"]


@pytest.mark.parametrize(
    ("body", "param", "told"),
    [
        ({}, "input", "Field required"),
        ({"input": " \n"}, "input", "must not be blank"),
        ({"input": "a" * (MAX_PREVIEW_CHARACTERS + 1)}, "input", "at most 20000"),
        ({"input": "<speak>a<b/></speak>"}, "input", "<b> is not supported"),
        ({"input": "a", "voice": "x"}, "voice", "unknown field"),
        ({"input": "a", "language": "fr"}, "language", "'en' or 'zh'"),
        ({"input": "a", "lexicon": {"a": 1}}, "lexicon.a", "valid string"),
    ],
)
def test_what_is_wrong_names_the_field(
    http: httpx.Client, body: dict[str, Any], param: str, told: str
) -> None:
    reply = http.post("/v1/audio/normalize", json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert told in error["message"]


def test_the_route_wants_a_key_where_the_others_do() -> None:
    with serving(LOCKED) as served:
        reply = httpx.post(f"{served.url}/v1/audio/normalize", json={"input": "a"})
    assert reply.status_code == 401


def test_the_model_may_be_named(http: httpx.Client) -> None:
    body = {"model": "org/ming", "input": "5 km"}
    assert http.post("/v1/audio/normalize", json=body).status_code == 200
    other = http.post("/v1/audio/normalize", json={**body, "model": "other"})
    assert (other.status_code, other.json()["error"]["param"]) == (404, "model")
