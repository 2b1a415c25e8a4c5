"""Packed weights are unpacked once, whole, and as they were."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sglang_omni.entrypoints.startup.checkpoint import MING_MINI, find_checkpoint
from sglang_omni.models.checksums import verify_checksums
from sglang_omni.models.weights_archive import get_archive_path, pack_weights, unpack_weights
from sglang_omni.protocol.errors import CheckpointError

ROOT = Path(__file__).parents[2]
LIMIT_BYTES = 60 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose weights are packed and gone."""
    folder = tmp_path / "model"
    (folder / "talker").mkdir(parents=True)
    for name in ("model", "talker/model"):
        (folder / f"{name}.safetensors").write_bytes(name.encode() * 1000)
    (folder / "config.json").write_text("{}")
    pack_weights(folder)
    for path in folder.rglob("*.safetensors"):
        path.unlink()
    return folder


def test_weights_come_back_where_they_were(folder: Path) -> None:
    unpack_weights(folder)
    assert (folder / "model.safetensors").read_bytes() == b"model" * 1000
    assert (folder / "talker" / "model.safetensors").read_bytes() == b"talker/model" * 1000
    assert not list(folder.glob(".unpacking-*"))


def test_they_are_unpacked_once_and_again_after_a_change(folder: Path) -> None:
    unpack_weights(folder)
    before = (folder / "model.safetensors").stat()
    unpack_weights(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before.st_mtime_ns
    (folder / "model.safetensors").write_bytes(b"new")
    pack_weights(folder)
    (folder / "model.safetensors").write_bytes(b"old")
    unpack_weights(folder)
    assert (folder / "model.safetensors").read_bytes() == b"new"


def test_several_processes_may_unpack_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(unpack_weights, [folder] * 8))
    assert (folder / "model.safetensors").read_bytes() == b"model" * 1000


def test_a_folder_without_an_archive_is_left_alone(tmp_path: Path) -> None:
    unpack_weights(tmp_path)
    assert not list(tmp_path.iterdir())


def test_equal_weights_give_equal_archives(folder: Path) -> None:
    first = get_archive_path(folder).read_bytes()
    unpack_weights(folder)
    assert pack_weights(folder).read_bytes() == first


def test_a_folder_that_cannot_be_written_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.weights.tar.xz").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="cannot be unpacked"):
        find_checkpoint(tmp_path / "model")


def test_the_archive_holds_what_the_checksums_say() -> None:
    unpack_weights(MING_MINI)
    verify_checksums(MING_MINI)


def test_it_needs_nothing_that_is_installed(folder: Path) -> None:
    module = ROOT / "sglang_omni" / "models" / "weights_archive.py"
    command = [sys.executable, "-I", "-S", str(module), str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def test_the_tree_fits_a_trip_to_a_machine_with_a_card() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert sum(path.stat().st_size for path in paths if path.is_file()) < LIMIT_BYTES
