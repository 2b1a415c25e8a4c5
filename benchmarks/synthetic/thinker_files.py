"""Write files of a thinker's random weights, in the layout that the product's own loader reads.

The other benchmarks draw the weights on the GPU as the model is built. Files show what loading
takes, and let `--placement auto` count their bytes. At the released shape they take 52 to 200 GB:
write them to memory (`/dev/shm`) where the disk is too small.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.synthetic.random_models.drawing import draw_parameter
from sglang_omni.models.checkpoint_files import INDEX_FILE, QUANTIZATION_KEY
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.thinker.fp8_layout import (
    SCALE_SUFFIX,
    add_scales,
    has_fp8_head,
    is_block_fp8,
    is_quantized,
)
from sglang_omni.models.ming.thinker.int4.layout import (
    PACKED,
    SCALE,
    is_int4,
    is_int4_tensor,
    list_int4_tensors,
)
from sglang_omni.models.ming.thinker.tensors import list_thinker_tensors
from sglang_omni.models.ming.tiny.files import write_json

WRITERS = 4
"""Files that are written side by side."""

Shapes = Mapping[str, tuple[int, ...]]


def write_thinker_files(folder: Path, device: torch.device) -> int:
    """Add a thinker to the checkpoint `folder`, as its `config.json` describes it.

    There is one file for each layer and one for the rest; the index names them beside those that
    it named before. Returns the bytes written.
    """
    config = read_json(folder / "config.json")
    shapes = list_stored_tensors(config)
    index = read_json(folder / INDEX_FILE)
    kept = set(index["weight_map"]) - set(shapes)
    index["weight_map"] = {name: index["weight_map"][name] for name in kept}
    quantization = config.get(QUANTIZATION_KEY)
    quantized, fp8_head = quantization is not None, has_fp8_head(quantization)

    def write(part: tuple[str, list[str]]) -> int:
        name, names = part
        tensors = {one: draw_tensor(one, shapes[one], quantized, fp8_head, device) for one in names}
        save_file(tensors, folder / name)
        index["weight_map"].update(dict.fromkeys(names, name))
        return sum(tensor.nbytes for tensor in tensors.values())

    with ThreadPoolExecutor(WRITERS) as writers:
        written = sum(writers.map(write, _group_by_file(shapes)))
    index["metadata"] = {"total_size": written + index.get("metadata", {}).get("total_size", 0)}
    write_json(folder / INDEX_FILE, index)
    return written


def list_stored_tensors(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a thinker's stored tensors, by name, from its `config.json`."""
    shapes = list_thinker_tensors(SimpleNamespace(**config["llm_config"]))
    quantization = config.get(QUANTIZATION_KEY)
    if quantization is not None and is_int4(quantization):
        symmetric = quantization["symmetric"]
        return list_int4_tensors(shapes, symmetric, has_fp8_head(quantization))
    if not is_block_fp8(quantization):
        return shapes
    return add_scales(shapes, has_fp8_head(quantization))


def draw_tensor(
    name: str, shape: tuple[int, ...], quantized: bool, fp8_head: bool, device: torch.device
) -> Tensor:
    """Draw one stored tensor on `device` and return it on the CPU.

    With `quantized`, matrices that a quantized checkpoint stores in FP8 are so.
    """
    dtype = _stored_dtype(name, quantized, fp8_head)
    tensor = torch.empty(shape, dtype=dtype, device=device)
    stem, _, part = name.rpartition(".")
    # Drawn as the parameters are that the model makes of them.
    draw_parameter(f"{stem}_{part}" if is_int4_tensor(name) else name, tensor, ranks=1)
    return tensor.cpu()


def _stored_dtype(name: str, quantized: bool, fp8_head: bool) -> torch.dtype:
    if is_int4_tensor(name):
        return {PACKED: torch.int16, SCALE: torch.bfloat16}[name.rpartition(".")[2]]
    if name.endswith(SCALE_SUFFIX):
        return torch.float32
    in_fp8 = quantized and is_quantized(name, fp8_head)
    return torch.float8_e4m3fn if in_fp8 else torch.bfloat16


def _group_by_file(shapes: Shapes) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each file and the tensors in it."""
    for part, names in groupby(sorted(shapes, key=_layer), key=_layer):
        yield f"thinker-{'rest' if part < 0 else part}.safetensors", list(names)


def _layer(name: str) -> int:
    """Return the layer of a tensor, or -1 if it belongs to none."""
    _, found, rest = name.partition(".layers.")
    return int(rest.partition(".")[0]) if found else -1
