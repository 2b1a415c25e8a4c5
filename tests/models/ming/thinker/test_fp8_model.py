"""An FP8 checkpoint through SGLang's own parameters and loaders, on a CPU, which can load it though
not multiply with it: what lies in the fused parameters is what the checkpoint says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sglang_omni.commands.quantize import quantize
from sglang_omni.thinker.contract import ThinkerSettings
from sglang_omni.thinker.launch import environment
from tests.commands.quantised import write_wide_checkpoint

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("load_fp8.py")


def test_sglang_takes_every_tensor_to_its_place(tmp_path: Path) -> None:
    source, target = tmp_path / "bf16", tmp_path / "fp8"
    write_wide_checkpoint(source)
    quantize(source, target)
    settings = ThinkerSettings(target)
    paths = {"PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(target), str(tmp_path / "loaded.pt")],
        env={**os.environ, **environment(settings, threads=1), **paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = torch.load(tmp_path / "loaded.pt")
    stored = torch.load(tmp_path / "loaded.pt.stored")
    assert loaded.keys() == stored.keys() and len(loaded) == 2 * (2 + 2 + 17 * 3 * 2)
    for name, tensor in stored.items():
        assert torch.equal(loaded[name].float(), tensor.float()), name
