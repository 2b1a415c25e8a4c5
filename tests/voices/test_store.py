"""Voices on disk: whole or not at all, found again, and never at a path that a user chose."""

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.pipeline.request import MediaPart, Reference, Voice
from sglang_omni.protocol.errors import (
    ConfigError,
    Forbidden,
    InsufficientStorage,
    InvalidRequest,
    UnknownVoice,
    VoiceNotFound,
)
from sglang_omni.voices.registry import UploadedRecording, VoiceRegistry
from sglang_omni.voices.store import MAX_READ_AT_ONCE, Quota, VoicesFull, VoiceStore
from tests.entrypoints.http.fake import FakeCloner

QUOTA = Quota(max_stored=3, max_per_owner=2)
PART = MediaPart("audio", ("data:,RIFF",), "audio_sample")


def open_store(folder: Path, model: str = "weights") -> VoiceStore:
    store = VoiceStore(folder, QUOTA, model)
    store.load()
    return store


def upload(name: str = "Ada", owner: str | None = None) -> UploadedRecording:
    return UploadedRecording(name, PART, "The words.", "she agreed", owner)


def add(store: VoiceStore, name: str = "Ada", owner: str | None = None) -> str:
    return asyncio.run(VoiceRegistry(FakeCloner(), store).add(upload(name, owner), ("river",))).id


def test_a_voice_survives_a_restart_with_everything_known_of_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    voice_id = add(store, owner="someone")
    before, cloned = store.find(voice_id, "someone") or pytest.fail("not kept")
    after, again = open_store(tmp_path).find("Ada", "someone") or pytest.fail("not found again")
    assert after == before
    assert (again.key, again.text, again.latents) == (cloned.key, "The words.", 8)
    assert np.array_equal(again.array.read(again.layout), cloned.array.read(cloned.layout))


def test_a_file_is_named_by_the_id_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    voice_id = add(open_store(tmp_path / "voices"))
    (file,) = (tmp_path / "voices").iterdir()
    assert file.name == f"{voice_id}.safetensors"
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "voices").stat().st_mode & 0o777 == 0o700


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InsufficientStorage, match="nothing was stored"):
        add(store)
    assert list(tmp_path.iterdir()) == []
    assert store.list_owned(None) == []
    monkeypatch.undo()
    assert add(store), "the place that it had was given back"


def test_what_is_no_voice_or_belongs_to_other_weights_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add(open_store(tmp_path))
    (tmp_path / "voice_broken.safetensors").write_bytes(b"nonsense")
    (tmp_path / "voice_half.part").write_bytes(b"half of a file")
    (tmp_path / "notes.txt").write_text("mine")
    assert open_store(tmp_path, "other weights").list_owned(None) == []
    assert "other weights" in caplog.text
    assert "voice_broken.safetensors is not a valid voice" in caplog.text
    assert len(open_store(tmp_path).list_owned(None)) == 1
    assert (tmp_path / "voice_broken.safetensors").exists()
    assert (tmp_path / "notes.txt").exists()
    assert not (tmp_path / "voice_half.part").exists()


def test_a_copied_file_under_another_name_is_no_second_voice(tmp_path: Path) -> None:
    voice_id = add(open_store(tmp_path))
    data = (tmp_path / f"{voice_id}.safetensors").read_bytes()
    (tmp_path / "voice_copy.safetensors").write_bytes(data)
    assert [voice.id for voice in open_store(tmp_path).list_owned(None)] == [voice_id]


def test_quotas_hold_for_uploads_at_once(tmp_path: Path) -> None:
    shelf = VoiceRegistry(FakeCloner(), open_store(tmp_path))

    async def all_at_once() -> list[object]:
        names = [upload(name, "one") for name in "abcd"] + [upload("a", "one")]
        return await asyncio.gather(*(shelf.add(n, ()) for n in names), return_exceptions=True)

    results = asyncio.run(all_at_once())
    kinds = [type(result) for result in results]
    assert kinds.count(VoicesFull) == 2
    assert kinds.count(InvalidRequest) == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_a_voice_that_is_written_and_not_yet_kept_counts_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    cloned = asyncio.run(FakeCloner().clone(PART, "The words."))
    store.reserve("Ada", "one")
    known = {"name": "Ada", "owner": "one", "text": "The words.", "consent": "she agreed"}
    store.write(store.create(**known, seconds=1.0, has_speaker=True), cloned.voice)
    # The second of two places is still free.
    store.reserve("Bob", "one")
    with pytest.raises(VoicesFull):
        store.reserve("Carl", "one")


def test_a_deleted_voice_is_gone_from_disk_and_only_its_owner_deletes_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    voice_id = add(store, owner="one")
    for name in (voice_id, "Ada"):
        with pytest.raises(VoiceNotFound):
            store.remove(name, "other")
    with pytest.raises(VoiceNotFound):
        store.remove("Ada", "other", any_owner=True)
    assert store.remove(voice_id, "other", any_owner=True).id == voice_id
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_no_voice_is_stored_and_it_is_said(tmp_path: Path) -> None:
    shelf = VoiceRegistry(FakeCloner(), None)
    with pytest.raises(Forbidden, match="--voices-dir"):
        asyncio.run(shelf.add(upload(), ()))
    assert shelf.list_stored(None) == []
    assert shelf.find("Ada", None) is None


def test_an_unusable_folder_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError) as error:
        open_store(tmp_path / "file")
    assert error.value.param == "voices_dir"


def test_the_talker_is_told_a_name_a_voice_or_nobody() -> None:
    shelf = VoiceRegistry(FakeCloner(), None)
    array = SharedArray()
    stored = ClonedVoice("k", None, array, array.write(np.zeros(64, np.float32)), 1)

    async def opened(voice: Voice) -> object:
        return await shelf.resolve(voice)

    assert asyncio.run(opened(Voice("DB30", 1))) == "DB30"
    assert asyncio.run(opened(Voice("Ada", 1, stored))) is stored
    assert asyncio.run(opened(Voice("", 1))) is None
    cloned = asyncio.run(opened(Voice("", 1, Reference(PART, "One."))))
    assert isinstance(cloned, ClonedVoice)
    assert cloned.text == "One."


def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    voice_id = add(open_store(tmp_path / "elsewhere"))
    (tmp_path / "voices").mkdir()
    name = f"{voice_id}.safetensors"
    (tmp_path / "voices" / name).symlink_to(tmp_path / "elsewhere" / name)
    assert open_store(tmp_path / "voices").list_owned(None) == []


def test_a_voice_that_is_deleted_while_its_request_waits_is_not_spoken(tmp_path: Path) -> None:
    here, there = open_store(tmp_path), open_store(tmp_path)
    voice_id = add(here)
    shelf = VoiceRegistry(FakeCloner(), here)
    waiting = Voice("Ada", 1, shelf.find("Ada", None))
    assert asyncio.run(shelf.resolve(waiting)) is waiting.source
    there.remove(voice_id, None)
    with pytest.raises(UnknownVoice, match="was deleted"):
        asyncio.run(shelf.resolve(waiting))


def test_a_folder_that_is_gone_has_no_voices_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path / "voices")
    add(store)
    (tmp_path / "voices").rename(tmp_path / "unmounted")
    assert store.list_owned(None) == []
    assert store.find("Ada", None) is None
    assert caplog.text.count("voices_dir cannot be read") == 1
    (tmp_path / "unmounted").rename(tmp_path / "voices")
    assert [voice.name for voice in store.list_owned(None)] == ["Ada"]


def test_many_voices_of_another_server_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    here = open_store(tmp_path)
    many = VoiceStore(tmp_path, Quota(max_stored=40, max_per_owner=40), "weights")
    for number in range(MAX_READ_AT_ONCE + 4):
        add(many, f"Ada {number}")
    assert len(here.list_owned(None)) == MAX_READ_AT_ONCE
    assert len(here.list_owned(None)) == MAX_READ_AT_ONCE + 4
