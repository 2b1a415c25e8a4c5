"""Two servers on one folder of voices, over HTTP; full disks; writers that are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sglang_omni.voices.registry import VoiceRegistry
from sglang_omni.voices.store import Quota, VoiceStore
from tests.entrypoints.http.fake import FakeBackend, FakeCloner, serving
from tests.entrypoints.http.routes.test_voices import upload

SPEECH = {"model": "org/ming", "input": "Hello.", "voice": "Ada"}
# Writes a voice, and stops for ever before it is whole.
WRITER = """
import asyncio, os, sys, time
from pathlib import Path
from tests.voices.test_store import add, open_store
os.fsync = lambda descriptor: (print("writing", flush=True), time.sleep(600))
add(open_store(Path(sys.argv[1])))
"""


def open_store(folder: Path) -> VoiceStore:
    store = VoiceStore(folder, Quota(max_stored=4, max_per_owner=3), "weights")
    store.load()
    return store


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    backends = (FakeBackend(), FakeBackend())
    for backend in backends:
        backend.voice_registry = VoiceRegistry(FakeCloner(), open_store(tmp_path))
    with (
        serving(backend=backends[0]) as first,
        serving(backend=backends[1]) as second,
        httpx.Client(base_url=first.url, timeout=10) as here,
        httpx.Client(base_url=second.url, timeout=10) as there,
    ):
        yield here, there


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def names(http: httpx.Client) -> list[str]:
    return [voice["name"] for voice in http.get("/v1/audio/voices").json()["uploaded_voices"]]


def test_what_one_stores_the_other_speaks_with_and_what_one_deletes_none_does(
    pair: tuple[httpx.Client, httpx.Client],
) -> None:
    here, there = pair
    for _ in range(3):
        voice = upload(here).json()
        assert names(here) == names(there) == ["Ada"]
        assert there.post("/v1/audio/speech", json=SPEECH).status_code == 200
        assert upload(there).status_code == 400, "the name is taken on both"
        assert there.delete(f"/v1/audio/voices/{voice['id']}").status_code == 200
        for http in pair:
            refused = http.post("/v1/audio/speech", json=SPEECH)
            assert refused.json()["error"]["code"] == "voice_not_found"
            assert names(http) == []


def test_a_file_that_an_operator_removes_is_no_voice_from_then_on(
    pair: tuple[httpx.Client, httpx.Client], tmp_path: Path
) -> None:
    here, _ = pair
    voice = upload(here).json()
    (tmp_path / f"{voice['id']}.safetensors").unlink()
    assert here.post("/v1/audio/speech", json=SPEECH).json()["error"]["code"] == "voice_not_found"


def test_a_server_that_starts_leaves_what_another_one_is_writing(
    writer: subprocess.Popen[str], tmp_path: Path
) -> None:
    (part,) = tmp_path.glob("*.part")
    assert open_store(tmp_path).list_owned(None) == []
    assert part.exists()


def test_what_a_killed_writer_left_is_no_voice_and_is_cleaned_up(
    writer: subprocess.Popen[str], tmp_path: Path, pair: tuple[httpx.Client, httpx.Client]
) -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait(10)
    assert len(list(tmp_path.glob("*.part"))) == 1
    here, there = pair
    assert names(here) == names(there) == []
    assert upload(here, name="Bea").status_code == 201
    assert list(tmp_path.glob("*.part")) == []
    assert names(there) == ["Bea"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_a_507_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "voices"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("mounts are not permitted")
    try:
        (folder / "filler").write_bytes(bytes(16 << 10))
        backend = FakeBackend()
        backend.voice_registry = VoiceRegistry(FakeCloner(), open_store(folder))
        with serving(backend=backend) as served, httpx.Client(base_url=served.url) as http:
            refused = upload(http)
            assert refused.status_code == 507
            error = refused.json()["error"]
            assert error["code"] == "insufficient_storage"
            assert error["type"] == "server_error"
            assert [path.name for path in folder.iterdir()] == ["filler"]
            assert names(http) == []
            (folder / "filler").unlink()
            assert upload(http).status_code == 201
            assert names(http) == ["Ada"]
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
