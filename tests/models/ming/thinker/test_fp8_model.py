"""A quantised model says what the original says.

SGLang's own parameters and loaders, which a CPU can use though not multiply with, take every tensor
of it to its place.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.entrypoints.cli.quantize import quantize
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK, SCALE_SUFFIX, is_quantized
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import load_reference
from sglang_omni.models.weights import TensorFolder
from tests.entrypoints.cli.quantised import write_wide_checkpoint

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("load_fp8.py")
RANKS_PROGRAM = Path(__file__).with_name("load_fp8_ranks.py")


def test_the_quantised_model_says_the_same(tmp_path: Path) -> None:
    source, target = tmp_path / "bf16", tmp_path / "fp8"
    write_wide_checkpoint(source)
    quantize(source, target)
    config, stored = MingConfig.from_pretrained(source).llm_config, TensorFolder(target)
    original, rounded = load_reference(source, config), load_reference(source, config)
    parameters = dict(rounded.named_parameters())
    for name in stored:
        if not is_quantized(name, fp8_head=True):
            continue
        weight = dequantize_weight(stored[name], stored[name + SCALE_SUFFIX])
        parameters[name.removeprefix("model.")].data.copy_(weight)
    positions, routes = torch.arange(24).expand(3, -1), torch.zeros(24, dtype=torch.uint8)
    for seed in range(4):
        ids = torch.randint(300, 800, (24,), generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            wanted, heard = (
                model(model.model.word_embeddings(ids), positions, routes)[-1]
                for model in (original, rounded)
            )
        assert (wanted - heard).norm() < 0.05 * wanted.norm()
        assert wanted.argmax() == heard.argmax()


def test_sglang_takes_every_tensor_to_its_place(tmp_path: Path) -> None:
    source, target = tmp_path / "bf16", tmp_path / "fp8"
    write_wide_checkpoint(source)
    quantize(source, target)
    run_program(PROGRAM, target, tmp_path / "loaded.pt")
    loaded = torch.load(tmp_path / "loaded.pt")
    stored = torch.load(tmp_path / "loaded.pt.stored")
    assert loaded.keys() == stored.keys()
    assert len(loaded) == 2 * (2 + 2 + 17 * 3 * 2)
    for name, tensor in stored.items():
        assert torch.equal(loaded[name].float(), tensor.float()), name


def run_program(program: Path, checkpoint: Path, result: Path) -> None:
    paths = {"PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run(
        [sys.executable, str(program), str(checkpoint), str(result)],
        env={**os.environ, **build_environment(ThinkerSettings(checkpoint), threads=1), **paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_ranks_that_share_experts_take_their_own(tmp_path: Path) -> None:
    source, target = tmp_path / "bf16", tmp_path / "fp8"
    # Each of two ranks has half of the shared expert, at least a block.
    write_wide_checkpoint(source, 2 * BLOCK)
    quantize(source, target)
    run_program(RANKS_PROGRAM, target, tmp_path / "loaded.pt")
    pairs = torch.load(tmp_path / "loaded.pt")
    assert len(pairs) == 2 * 2 * 4
    for name, (loaded, stored) in pairs.items():
        assert torch.equal(loaded.float(), stored.float()), name
