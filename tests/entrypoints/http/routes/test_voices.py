"""`/v1/audio/voices`, and voices of one's own in speech and chat."""

import base64
from typing import Any

import httpx
import pytest

from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.entrypoints.api_keys import Keys, read_keys
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.pipeline.request import Reference
from sglang_omni.protocol.compat.voice_names import map_openai_voices
from tests.entrypoints.http.fake import FakeBackend, serving

FIELDS = {"name": "Ada", "consent": "Ada Lovelace agreed on 3 May"}
SOUND = {"audio_sample": ("ada.wav", b"RIFF....", "audio/wav")}


def upload(http: httpx.Client, **fields: Any) -> httpx.Response:
    files = fields.pop("files", SOUND)
    asked = {name: value for name, value in {**FIELDS, **fields}.items() if value is not None}
    return http.post("/v1/audio/voices", data=asked, files=files)


def test_the_voices_are_at_first_the_presets(http: httpx.Client) -> None:
    assert http.get("/v1/audio/voices").json() == {
        "voices": ["prompt", "river"],
        "default_voice": "prompt",
        "aliases": {**map_openai_voices(("prompt", "river")), "nova": "river"},
        "uploaded_voices": [],
        "speaker_vectors": True,
    }


def test_a_checkpoint_without_a_speaker_network_says_so(
    http: httpx.Client, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(backend), "has_speaker_encoder", False)
    assert http.get("/v1/audio/voices").json()["speaker_vectors"] is False


def test_a_stored_voice_is_listed_used_by_name_and_id_and_deleted(
    http: httpx.Client, backend: FakeBackend
) -> None:
    made = upload(http, ref_text="The first program.")
    assert made.status_code == 201
    voice = made.json()
    assert voice["object"] == "audio.voice"
    assert voice["name"] == "Ada"
    assert voice["has_transcript"]
    assert voice["has_speaker_vector"]
    assert http.get("/v1/audio/voices").json()["voices"] == ["prompt", "river", "Ada"]
    for named in ("Ada", voice["id"], {"id": voice["id"]}):
        body = {"model": "org/ming", "input": "Hello.", "voice": named}
        assert http.post("/v1/audio/speech", json=body).status_code == 200
        source = backend.requests[-1].voice.source
        assert isinstance(source, ClonedVoice)
        assert source.text == "The first program."
    gone = http.delete(f"/v1/audio/voices/{voice['id']}")
    assert gone.json() == {"id": voice["id"], "object": "audio.voice", "deleted": True}
    assert http.get("/v1/audio/voices").json()["voices"] == ["prompt", "river"]
    body = {"model": "org/ming", "input": "Hello.", "voice": "Ada"}
    assert http.post("/v1/audio/speech", json=body).json()["error"]["code"] == "voice_not_found"
    assert http.delete("/v1/audio/voices/Ada").status_code == 404


@pytest.mark.parametrize("named", ["nova", {"id": "nova"}])
def test_an_alias_speaks_with_its_preset(
    http: httpx.Client, backend: FakeBackend, named: object
) -> None:
    body = {"model": "org/ming", "input": "Hello.", "voice": named}
    assert http.post("/v1/audio/speech", json=body).status_code == 200
    assert backend.requests[-1].voice.name == "river"


@pytest.mark.parametrize("name", ["audio", "file", "ref_audio"])
def test_other_names_of_the_file_are_taken_too(http: httpx.Client, name: str) -> None:
    assert upload(http, files={name: SOUND["audio_sample"]}).status_code == 201


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"consent": None}, "consent"),
        ({"consent": "false"}, "consent"),
        ({"consent": " "}, "consent"),
        ({"name": None}, "name"),
        ({"name": "../../etc/passwd"}, "name"),
        ({"name": "nova"}, "name"),
        ({"name": ".hidden"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": "voice_1"}, "name"),
        ({"name": "river"}, "name"),
        ({"name": "default"}, "name"),
        ({"surname": "Lovelace"}, "surname"),
        ({"files": {"attachment": SOUND["audio_sample"]}}, "attachment"),
        ({"files": {"audio_sample": ("a.wav", b"", "audio/wav")}}, "audio_sample"),
        ({"ref_text": "x" * 1001}, "ref_text"),
    ],
)
def test_a_bad_upload_names_its_field(http: httpx.Client, change: Any, param: str) -> None:
    refused = upload(http, **change)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["param"] == param
    assert http.get("/v1/audio/voices").json()["uploaded_voices"] == []


def test_a_foreign_page_cannot_have_a_voice_stored(http: httpx.Client) -> None:
    http.headers["Origin"] = "https://elsewhere.example"
    refused = upload(http)
    assert refused.status_code == 403
    assert "elsewhere" in refused.json()["error"]["message"]
    http.headers["Origin"] = str(http.base_url).rstrip("/")
    assert upload(http).status_code == 201


def test_a_body_that_is_no_form_is_refused(http: httpx.Client) -> None:
    refused = http.post("/v1/audio/voices", json=FIELDS)
    assert refused.status_code == 400
    assert "multipart" in refused.json()["error"]["message"]


def test_a_name_is_taken_once_and_a_quota_holds(http: httpx.Client) -> None:
    assert [upload(http, name=name).status_code for name in ("a", "b", "c")] == [201] * 3
    assert upload(http, name="a").json()["error"]["param"] == "name"
    full = upload(http, name="d")
    assert full.status_code == 429
    assert full.json()["error"]["code"] == "voice_quota_exceeded"
    http.delete("/v1/audio/voices/b")
    assert upload(http, name="d").status_code == 201


def test_a_key_sees_its_own_voices_only_and_an_administrator_deletes_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("USERS", "the-key-of-ada-1,the-key-of-bob-2")
    monkeypatch.setenv("ADMINS", "the-key-of-root-3")
    users, admins = read_keys(["env:USERS"], "api_key"), read_keys(["env:ADMINS"], "admin_api_key")
    with serving(Access(keys=users, admin_keys=admins)) as served:

        def client(key: str) -> httpx.Client:
            return httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {key}"})

        with client("the-key-of-ada-1") as ada, client("the-key-of-bob-2") as bob:
            voice = upload(ada).json()
            assert bob.get("/v1/audio/voices").json()["uploaded_voices"] == []
            body = {"model": "org/ming", "input": "Hello.", "voice": voice["id"]}
            assert bob.post("/v1/audio/speech", json=body).status_code == 400
            assert ada.post("/v1/audio/speech", json=body).status_code == 200
            assert bob.delete(f"/v1/audio/voices/{voice['id']}").status_code == 404
            assert upload(bob).status_code == 201, "names are each owner's own"
        with client("the-key-of-root-3") as root:
            assert root.delete(f"/v1/audio/voices/{voice['id']}").status_code == 200


def test_the_owner_id_of_a_key_is_the_same_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERS", "the-key-of-ada-1")
    keys, again = read_keys(["env:USERS"], "api_key"), read_keys(["env:USERS"], "api_key")
    assert (
        keys.derive_owner_id("the-key-of-ada-1")
        == again.derive_owner_id("the-key-of-ada-1")
        is not None
    )
    assert keys.derive_owner_id("another-key-4567") is None
    assert Keys().derive_owner_id("the-key-of-ada-1") is None


def test_a_recording_in_the_request_is_spoken_like(
    http: httpx.Client, backend: FakeBackend
) -> None:
    source = "data:audio/wav;base64," + base64.b64encode(b"RIFF").decode()
    asked = {"ref_audio": source, "ref_text": "One."}
    speech = {"model": "org/ming", "input": "Hello.", **asked}
    assert http.post("/v1/audio/speech", json=speech).status_code == 200
    chat = {
        "model": "org/ming",
        "messages": [{"role": "user", "content": "Hello."}],
        "modalities": ["text", "audio"],
        "audio": {**asked, "format": "mp3"},
    }
    assert http.post("/v1/chat/completions", json=chat).status_code == 200
    fields = []
    for request in backend.requests:
        reference = request.voice.source
        assert isinstance(reference, Reference)
        assert reference.text == "One."
        assert reference.recording.sources == (source,)
        fields.append(reference.recording.field)
    assert fields == ["ref_audio", "audio.ref_audio"]
