"""The server and SGLang each know a checkpoint of the whole system."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from benchmarks.encoders.shapes import SMALL as SMALL_ENCODERS
from benchmarks.images.shapes import SMALL as SMALL_IMAGES
from benchmarks.images.shapes import ImageShapes
from benchmarks.synthetic.random_models.names import PLUG_IN
from benchmarks.synthetic.system_checkpoint import write_system_checkpoint
from benchmarks.synthetic.thinker_files import list_stored_tensors
from benchmarks.thinker.shapes import SMALL
from sglang_omni.models.base import HeadForm
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.config import read_talker_config, read_vae_config
from sglang_omni.models.ming.image.config import has_image_output
from sglang_omni.models.ming.sizes import read_sizes
from sglang_omni.models.ming.thinker.fp8_layout import HEAD, SCALE_SUFFIX
from sglang_omni.models.ming.thinker.hf_config import ARCHITECTURE
from sglang_omni.models.ming.thinker.int4.layout import METHOD
from sglang_omni.models.ming.tiny.write import write_tiny_checkpoint
from sglang_omni.models.registry import family_of


@pytest.mark.extended
@pytest.mark.parametrize(
    ("images", "weights"), [(None, "int4"), (SMALL_IMAGES, "bf16"), (None, "fp8")]
)
def test_the_family_is_known_and_the_thinker_is_drawn(
    tmp_path: Path, images: ImageShapes | None, weights: str
) -> None:
    tiny, folder = tmp_path / "tiny", tmp_path / "system"
    write_tiny_checkpoint(tiny)
    speech = read_talker_config(tiny / "talker"), read_vae_config(tiny / "talker" / "vae")
    cpu = torch.device("cpu")
    write_system_checkpoint(folder, SMALL, SMALL_ENCODERS, speech, images, weights, cpu)
    assert family_of(folder) is family_of(tiny)
    assert read_json(folder / "config.json")["architectures"][0] == PLUG_IN
    assert has_image_output(folder) == bool(images)
    quantized = read_json(folder / "config.json").get("quantization_config", {})
    methods = {"bf16": None, "fp8": "fp8", "int4": METHOD}
    assert quantized.get("quant_method") == methods[weights]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("weights", "head"),
    [
        ("bf16", HeadForm.FP8),
        ("fp8", HeadForm.FP8),
        ("int4", HeadForm.FP8),
        ("int4", HeadForm.BF16),
    ],
)
def test_a_thinker_in_files_is_complete_and_counted(
    tmp_path: Path, weights: str, head: HeadForm
) -> None:
    tiny, folder = tmp_path / "tiny", tmp_path / "system"
    write_tiny_checkpoint(tiny)
    speech = read_talker_config(tiny / "talker"), read_vae_config(tiny / "talker" / "vae")
    cpu = torch.device("cpu")
    write_system_checkpoint(folder, SMALL, SMALL_ENCODERS, speech, None, weights, cpu, True, head)
    config = read_json(folder / "config.json")
    assert config["architectures"] == [ARCHITECTURE]
    stored = list_stored_tensors(config)
    files = {path.name: path for path in folder.glob("*.safetensors")}
    index = read_json(folder / "model.safetensors.index.json")["weight_map"]
    assert set(index.values()) == set(files)
    loaded: dict[str, torch.Tensor] = {}
    for path in files.values():
        loaded |= load_file(path)
    assert set(loaded) == set(index)
    assert {name: tuple(loaded[name].shape) for name in stored} == stored
    sizes = read_sizes(folder)
    assert sizes.matrices + sizes.rest == sum(loaded[name].nbytes for name in stored)
    in_fp8 = weights != "bf16" and head is HeadForm.FP8
    assert loaded[HEAD].dtype == (torch.float8_e4m3fn if in_fp8 else torch.bfloat16)
    assert (HEAD + SCALE_SUFFIX in loaded) == in_fp8
    matrices = [tensor for name, tensor in loaded.items() if name in stored and tensor.dim() > 1]
    assert all(tensor.float().std() > 0 for tensor in matrices if tensor.numel() > 64)
