"""Routes follow what the checkpoint can do, and refuse the rest by name."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from sglang_omni.pipeline.request import TextPart
from tests.entrypoints.http.fake import FakeBackend
from tests.testing.family import CAPABILITIES

SMALL = replace(
    CAPABILITIES,
    name="Small",
    speech_languages=("en",),
    speech_tasks=("speech",),
    speech_instructions=False,
    transcription_prompt="Write it down.",
    transcription_languages=("en",),
    transcription_hints=False,
)
CLIP = ("clip.wav", b"RIFF", "audio/wav")
MUSIC = "Genre: a. Mood: b. Instrument: c. Theme: d. Duration: 60s."


@pytest.fixture(autouse=True)
def small(backend: FakeBackend) -> None:
    backend.capabilities = SMALL


def test_the_list_of_models_tells_them(http: httpx.Client) -> None:
    card = http.get("/v1/models").json()["data"][0]
    assert card["capabilities"] == {
        "name": "Small",
        "speech_languages": ["en"],
        "speech_tasks": ["speech"],
        "speech_instructions": False,
        "transcription_languages": ["en"],
        "transcription_hints": False,
        "starter_prompts": list(CAPABILITIES.starter_prompts),
        "video_sound": CAPABILITIES.video_sound,
        "image_output": CAPABILITIES.image_output,
        "instruction_fields": list(CAPABILITIES.instruction_fields),
        "voice_cloning": True,
    }
    assert http.get("/v1/models/org/ming").json() == card


@pytest.mark.parametrize(
    ("change", "param", "words"),
    [
        ({"instructions": {"emotion": "happy"}}, "instructions", "Small does not support them"),
        ({"task": "music", "input": MUSIC}, "task", "Small does not make music; it makes speech"),
        ({"task": "sound"}, "task", "does not make sound"),
        ({"input": "Hi 你好"}, "input", "Small speaks English; it cannot read 你好"),
        ({"input": "Привет"}, "input", "cannot read Привет"),
        ({"ref_audio": "data:,x", "ref_text": "你好"}, "ref_text", "cannot read 你好"),
    ],
)
def test_speech_it_cannot_make_is_refused(
    http: httpx.Client, change: dict[str, Any], param: str, words: str
) -> None:
    reply = http.post("/v1/audio/speech", json={"model": "org/ming", "input": "Hi.", **change})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert words in error["message"]


def test_a_word_of_the_lexicon_is_spoken(http: httpx.Client) -> None:
    body = {"model": "org/ming", "input": "Say Привет!", "lexicon": {"Привет": "Privet"}}
    assert http.post("/v1/audio/speech", json=body).status_code == 200
    body["input"] = "Say Привет and пока!"
    assert "it cannot read пока" in http.post("/v1/audio/speech", json=body).text


def test_a_style_in_free_text_is_ignored(http: httpx.Client) -> None:
    """Agents send one with every text."""
    item = {"input": "Hi.", "instructions": "Slowly."}
    reply = http.post("/v1/audio/speech", json=item)
    assert (reply.status_code, reply.headers["x-ignored-fields"]) == (200, "instructions")
    batch = http.post("/v1/audio/speech/batch", json={"items": [item]})
    assert batch.json()["succeeded"] == 1
    assert batch.headers["x-ignored-fields"] == "instructions"


@pytest.mark.parametrize(
    ("instructions", "param"),
    [({"emotion": "happy"}, "instructions.emotion"), ({"dialect": "cantonese"}, "dialect")],
)
def test_a_field_of_instructions_that_it_did_not_learn_is_refused(
    http: httpx.Client, backend: FakeBackend, instructions: dict[str, str], param: str
) -> None:
    backend.capabilities = replace(
        SMALL, speech_instructions=True, instruction_fields=("speed", "pitch", "style")
    )
    body = {"model": "org/ming", "input": "Hi.", "instructions": {"speed": "slow"}}
    assert http.post("/v1/audio/speech", json=body).status_code == 200
    body["instructions"] = instructions
    reply = http.post("/v1/audio/speech", json=body)
    assert reply.status_code == 400
    assert param in reply.json()["error"]["param"]
    assert "Small does not follow it; it follows speed, pitch and style" in reply.text


def test_a_free_text_is_ignored_if_only_fields_are_followed(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.capabilities = replace(SMALL, speech_instructions=True, instruction_fields=("speed",))
    reply = http.post("/v1/audio/speech", json={"input": "Hi.", "instructions": "Slowly."})
    assert (reply.status_code, reply.headers["x-ignored-fields"]) == (200, "instructions")


def test_a_model_that_did_not_learn_to_clone_refuses_recordings(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.capabilities = replace(SMALL, voice_cloning=False)
    words = "Small does not speak in the voice of a recording; choose one of its voices"
    body = {"model": "org/ming", "input": "Hi.", "ref_audio": "data:audio/wav;base64,UklGRg=="}
    reply = http.post("/v1/audio/speech", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "ref_audio")
    assert words in reply.text
    fields = {"name": "me", "consent": "I agree"}
    reply = http.post("/v1/audio/voices", data=fields, files={"audio_sample": CLIP})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "audio_sample")
    assert words in reply.text


def test_in_a_batch_only_the_item_fails(http: httpx.Client) -> None:
    items = [{"input": "Hi."}, {"input": "Привет"}]
    body = {"model": "org/ming", "items": items}
    good, bad = http.post("/v1/audio/speech/batch", json=body).json()["results"]
    assert good["status"] == "success"
    assert bad["error"]["param"] == "items.1.input"


def test_an_uploaded_voice_says_what_it_can_read(http: httpx.Client) -> None:
    fields = {"name": "me", "consent": "I agree", "ref_text": "你好"}
    reply = http.post("/v1/audio/voices", data=fields, files={"audio_sample": CLIP})
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "ref_text"


def test_it_is_asked_to_transcribe_as_it_was_trained(
    http: httpx.Client, backend: FakeBackend
) -> None:
    fields = {"model": "org/ming", "language": "English"}
    reply = http.post("/v1/audio/transcriptions", data=fields, files={"file": CLIP})
    assert reply.status_code == 200
    (asked,) = backend.requests
    assert asked.messages[0].content[0] == TextPart("Write it down.")
    assert backend.cut_rules


@pytest.mark.parametrize(
    ("change", "param"), [({"language": "de"}, "language"), ({"prompt": "Mill."}, "prompt")]
)
def test_a_transcription_it_cannot_make_is_refused(
    http: httpx.Client, change: dict[str, str], param: str
) -> None:
    fields = {"model": "org/ming", **change}
    reply = http.post("/v1/audio/transcriptions", data=fields, files={"file": CLIP})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
