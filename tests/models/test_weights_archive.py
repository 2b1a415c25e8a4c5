"""Packed weights are unpacked once, whole, and as they were."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from sglang_omni.entrypoints.startup.checkpoint import MING_MINI, find_checkpoint
from sglang_omni.models.checksums import verify_checksums
from sglang_omni.models.weights_archive import (
    get_archive_path,
    join_file,
    pack_weights,
    split_file,
    unpack_weights,
)
from sglang_omni.protocol.errors import CheckpointError

ROOT = Path(__file__).parents[2]
LIMIT_BYTES = 60 << 20
BLOCK_BYTES = 4096


def write_weights(path: Path, content: str) -> None:
    """Write tensors of several types, which depend on `content`."""
    seeded = torch.Generator().manual_seed(len(content))
    save_file(
        {
            "a": torch.randn(7, 5, generator=seeded).bfloat16(),
            "b": torch.randn(3, generator=seeded),
            "c": torch.randn(11, generator=seeded).bfloat16(),
            "d": torch.arange(len(content)),
        },
        path,
        {"content": content},
    )


def build_expected(tmp_path: Path, content: str) -> bytes:
    """Return the bytes that `write_weights` writes."""
    path = tmp_path / "expected"
    write_weights(path, content)
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose weights are packed and gone."""
    folder = tmp_path / "model"
    (folder / "talker").mkdir(parents=True)
    for name in ("model", "talker/model"):
        write_weights(folder / f"{name}.safetensors", name)
    (folder / "config.json").write_text("{}")
    pack_weights(folder)
    for path in folder.rglob("*.safetensors"):
        path.unlink()
    return folder


def test_weights_come_back_where_they_were(folder: Path, tmp_path: Path) -> None:
    unpack_weights(folder)
    for name in ("model", "talker/model"):
        expected = build_expected(tmp_path, name)
        assert (folder / f"{name}.safetensors").read_bytes() == expected
    assert not list(folder.glob(".unpacking-*"))


def test_they_are_unpacked_once_and_again_after_a_change(folder: Path, tmp_path: Path) -> None:
    unpack_weights(folder)
    before = (folder / "model.safetensors").stat()
    unpack_weights(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before.st_mtime_ns
    write_weights(folder / "model.safetensors", "new weights")
    pack_weights(folder)
    (folder / "model.safetensors").write_bytes(b"old")
    unpack_weights(folder)
    expected = build_expected(tmp_path, "new weights")
    assert (folder / "model.safetensors").read_bytes() == expected


def test_several_processes_may_unpack_at_once(folder: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(unpack_weights, [folder] * 8))
    assert (folder / "model.safetensors").read_bytes() == build_expected(tmp_path, "model")


def test_exponents_are_apart_from_fractions(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.tensor([1.5, -0.25, 0.0]).bfloat16()}, path)
    parts = split_file(path.read_bytes())
    assert parts.exponents == bytes([127, 125, 0])
    assert parts.fractions == bytes([0x40, 0x80, 0])
    assert join_file(parts) == path.read_bytes()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_every_number_of_sixteen_bits_comes_back(tmp_path: Path, dtype: torch.dtype) -> None:
    path = tmp_path / "model.safetensors"
    bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)
    save_file({"all": bits.view(dtype), "none": torch.empty(0, dtype=dtype)}, path)
    assert join_file(split_file(path.read_bytes())) == path.read_bytes()


def test_bfloat16_weights_take_two_thirds_of_their_bytes(folder: Path) -> None:
    weights = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0))
    save_file({"a": weights.bfloat16()}, folder / "model.safetensors")
    assert pack_weights(folder).stat().st_size < 0.67 * 2_000_000


def test_rounded_weights_take_little_more_than_half(folder: Path) -> None:
    weights = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0))
    path = folder / "model.safetensors"
    save_file({"a": (weights.bfloat16().view(torch.int16) & ~3).view(torch.bfloat16)}, path)
    before = path.read_bytes()
    assert pack_weights(folder).stat().st_size < 0.55 * 2_000_000
    path.unlink()
    unpack_weights(folder)
    assert path.read_bytes() == before


def test_a_folder_without_an_archive_is_left_alone(tmp_path: Path) -> None:
    unpack_weights(tmp_path)
    assert not list(tmp_path.iterdir())


def test_equal_weights_give_equal_archives(folder: Path) -> None:
    first = get_archive_path(folder).read_bytes()
    unpack_weights(folder)
    assert pack_weights(folder).read_bytes() == first


def test_a_folder_that_cannot_be_written_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.weights.tar").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="cannot be unpacked"):
        find_checkpoint(tmp_path / "model")


def test_the_archive_holds_what_the_checksums_say() -> None:
    unpack_weights(MING_MINI)
    verify_checksums(MING_MINI)


def test_it_needs_nothing_that_is_installed(folder: Path) -> None:
    unpack_weights(folder)
    assert _run_program(folder.parent, folder.name).returncode == 0


def _run_program(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    module = ROOT / "sglang_omni" / "models" / "weights_archive.py"
    command = [sys.executable, "-I", "-S", str(module), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_the_program_says_what_it_did(folder: Path) -> None:
    unpack_weights(folder)
    packed = get_archive_path(folder).read_bytes()
    get_archive_path(folder).unlink()
    # From within, where the folder's name is not in the argument.
    done = _run_program(folder, ".")
    assert done.stdout == f"wrote {get_archive_path(folder)}\n"
    assert get_archive_path(folder).read_bytes() == packed


def test_help_packs_nothing(tmp_path: Path) -> None:
    done = _run_program(tmp_path, "--help")
    assert done.returncode == 0
    assert "folder" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [("missing",), (), ("here", "too many"), ("--what",)])
def test_a_wrong_command_line_is_refused_and_packs_nothing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    done = _run_program(tmp_path, *arguments)
    assert done.returncode == 2
    assert "usage:" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_a_folder_without_weights_keeps_the_archive_of_its_name(folder: Path) -> None:
    packed = get_archive_path(folder).read_bytes()
    done = _run_program(folder.parent, "model")
    assert done.returncode == 2
    assert "has no *.safetensors" in done.stderr
    assert get_archive_path(folder).read_bytes() == packed


def test_the_tree_fits_a_trip_to_a_machine_with_a_card() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    # As on a disk, where a small file takes a whole block.
    blocks = sum(-(path.stat().st_size // -BLOCK_BYTES) for path in paths if path.is_file())
    assert blocks * BLOCK_BYTES < LIMIT_BYTES
