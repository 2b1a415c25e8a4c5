"""What a run has learnt so far leaves it in few small files, and becomes a checkpoint."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from cookbook.ming_mini.weights import load_pieces, save_pieces
from cookbook.ming_mini_2 import pack
from cookbook.ming_mini_2.export import PARTS, REST, export, restore, trained_parts
from sglang_omni.models.capabilities import FILE
from sglang_omni.models.checksums import verify_checksums

LIMIT = 700_000
TALKER = "talker/model.safetensors"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder as `recipe.sh` leaves it, of every part but the pictures."""
    folder = tmp_path / "run"
    for number, part in enumerate(PARTS[:3]):
        (folder / part.folder).mkdir(parents=True, exist_ok=True)
        save_pieces(tensors(number), folder / part.folder, part.pieces, 100_000)
    (folder / "thinker" / "model").mkdir()
    (folder / "thinker" / "model" / "config.json").write_text("{}")
    (folder / "train_vae.log").write_text("done\n")
    return folder


def tensors(seed: int) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    found = {f"layer.{number}.weight": torch.randn(150, 90) for number in range(5)}
    return found | {"count": torch.tensor(3)}


def test_exported_files_are_few_and_small_and_come_back(run: Path, tmp_path: Path) -> None:
    files = export(run, tmp_path / "out", LIMIT)
    assert len(files) == 3
    assert sorted((tmp_path / "out").iterdir()) == sorted(files)
    assert all(file.stat().st_size <= LIMIT for file in files)
    again = tmp_path / "again"
    assert restore(tmp_path / "out", again) == list(PARTS[:3]) == list(trained_parts(again))
    for number, part in enumerate(PARTS[:3]):
        found = load_pieces(again / part.folder, part.pieces)
        for name, tensor in tensors(number).items():
            wanted = tensor.bfloat16().float() if tensor.is_floating_point() else tensor
            assert torch.equal(found[name], wanted)
    assert (again / "thinker" / "model" / "config.json").read_text() == "{}"
    assert (again / "train_vae.log").read_text() == "done\n"


def test_a_version_replaces_the_last_one(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert len(export(run, out, LIMIT)) == 3
    for piece in (run / "speech").glob("talker-*"):
        piece.unlink()
    assert len(export(run, out, LIMIT)) == len(list(out.iterdir())) == 2
    assert restore(out, tmp_path / "again") == list(PARTS[:2])


def test_before_anything_is_trained_there_are_the_logs(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thinker.log").write_text("waiting\n")
    assert [file.name for file in export(tmp_path / "run", tmp_path / "out")] == [REST]
    with pytest.raises(FileNotFoundError):
        restore(tmp_path / "out", tmp_path / "again")


def test_a_file_that_would_be_too_large_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"weights-1\.safetensors is larger than 20000 bytes"):
        export(run, tmp_path / "out", 20_000)


def test_it_goes_on_until_it_is_told_to_end(run: Path, tmp_path: Path) -> None:
    out, broken = tmp_path / "out", run / "speech" / "talker-9.safetensors"
    broken.write_bytes(b"broken")
    command = [sys.executable, "-m", "cookbook.ming_mini_2.export", "--run", str(run)]
    with subprocess.Popen(
        [*command, "--output", str(out), "--every", "0.5"], stdout=subprocess.PIPE, text=True
    ) as exporter:
        assert exporter.stdout
        assert exporter.stdout.readline().startswith("nothing was exported: ")
        broken.unlink()
        end = time.monotonic() + 100
        while not (out / REST).exists() and time.monotonic() < end:
            time.sleep(0.1)
        (run / "thinker.log").write_text("the end\n")
        exporter.send_signal(signal.SIGTERM)
        assert exporter.wait(60) == 0
    restore(out, tmp_path / "again")
    assert (tmp_path / "again" / "thinker.log").read_text() == "the end\n"


def test_what_is_not_trained_is_that_of_the_base(tmp_path: Path) -> None:
    base, run = tmp_path / "base", tmp_path / "run"
    (base / "talker").mkdir(parents=True)
    run.mkdir()
    # Numbers that rounding leaves as they are.
    save_file({"spoken": torch.tensor([1.5, -0.25]).bfloat16()}, base / TALKER)
    (base / FILE).write_text(json.dumps({"speech_instructions": False}))
    checkpoint = tmp_path / "checkpoint"
    assert pack.pack(run, checkpoint, base) == []
    assert (checkpoint / TALKER).read_bytes() == (base / TALKER).read_bytes()
    assert json.loads((checkpoint / FILE).read_text()) == {"speech_instructions": False}
    verify_checksums(checkpoint)


def test_the_base_draws_and_its_speech_vae_is_rounded_most(tmp_path: Path) -> None:
    base, run, checkpoint = (tmp_path / name for name in ("base", "run", "checkpoint"))
    run.mkdir()
    # Takes five bits of mantissa; with four, the nearest number is 1.
    for name in ("talker", "talker/vae", "vae", "mlp"):
        (base / name).mkdir(parents=True)
        tensor = torch.tensor([1 + 2**-5]).bfloat16()
        save_file({"weight": tensor}, base / name / "model.safetensors")
    pack.pack(run, checkpoint, base)
    packed = {
        path.parent.relative_to(checkpoint).as_posix(): load_file(path)["weight"].item()
        for path in checkpoint.rglob("*.safetensors")
    }
    assert packed == {"talker": 1.03125, "talker/vae": 1.0, "vae": 1.03125, "mlp": 1.03125}
