"""The sizes of the released model, from the shapes of its tensors, and GPUs to serve it on."""

from collections.abc import Iterable, Mapping
from math import prod
from types import SimpleNamespace

import torch
from torch import nn

from benchmarks.encoders.shapes import REAL
from benchmarks.talker.shapes import TALKER, VAE
from benchmarks.thinker.shapes import CONSTANTS, SHAPE
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.ming.encoders.tensors import list_audio_tensors, list_vision_tensors
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.speech.vae import AudioVAE
from sglang_omni.models.ming.thinker.fp8_layout import is_quantized
from sglang_omni.models.ming.thinker.int4.layout import is_expert_matrix
from sglang_omni.models.ming.thinker.tensors import list_thinker_tensors
from sglang_omni.models.ming.working_memory import build_working_memory
from sglang_omni.models.sizes import CheckpointSizes

MIB, GB = 1 << 20, 10**9
TEXT = SHAPE | CONSTANTS
Shapes = Mapping[str, tuple[int, ...]]


def count_bytes(shapes: Iterable[tuple[int, ...]]) -> int:
    """Return the bytes of tensors in bfloat16."""
    return 2 * sum(map(prod, shapes))


def count_module(module: nn.Module) -> int:
    """Return the bytes of a module in bfloat16."""
    return count_bytes(tuple(tensor.shape) for tensor in module.state_dict().values())


def measure_released() -> CheckpointSizes:
    """Return the sizes of the released checkpoint in bfloat16, without its image engine."""
    thinker = list_thinker_tensors(SimpleNamespace(**TEXT))
    matrices = {name: shape for name, shape in thinker.items() if is_quantized(name, True)}
    with torch.device("meta"):
        talker = count_module(Talker(TALKER)) + count_module(AudioVAE(VAE))
    return CheckpointSizes(
        matrices=count_bytes(matrices.values()),
        rest=count_bytes(thinker.values()) - count_bytes(matrices.values()),
        image_encoder=count_bytes(list_vision_tensors(REAL.vision, REAL.hidden_size).values()),
        audio_encoder=count_bytes(list_audio_tensors(REAL.audio, REAL.hidden_size).values()),
        talker=talker,
        kv_bytes=2 * 2 * TEXT["num_hidden_layers"] * TEXT["num_key_value_heads"] * TEXT["head_dim"],
        kv_heads=TEXT["num_key_value_heads"],
        context=TEXT["max_position_embeddings"],
        fp8=False,
        working=build_working_memory(TEXT, REAL, TALKER, VAE),
        expert_matrices=count_bytes(s for name, s in thinker.items() if is_expert_matrix(name)),
    )


RELEASED = measure_released()
# What was measured with its image engine: 15.9 GB of weights, 12.0 of them in matrices that become
# FP8 (`benchmarks/results/images_h100.json`: 18.9 GB allocated in bfloat16, 12.4 in FP8).
IMAGE_BYTES, IMAGE_MATRIX_BYTES = int(15.9 * GB), int(12.0 * GB)


def h100s(count: int) -> tuple[Gpu, ...]:
    """Return H100 with the memory that their driver reports."""
    return make_gpus("NVIDIA H100 80GB HBM3", 81_559 * MIB, count)


def make_gpus(name: str, total_bytes: int, count: int) -> tuple[Gpu, ...]:
    """Return idle Hopper GPUs."""
    return tuple(Gpu(index, name, total_bytes, total_bytes, (9, 0)) for index in range(count))


def h200s(count: int) -> tuple[Gpu, ...]:
    """Return H200 with the memory that their driver reports."""
    return make_gpus("NVIDIA H200", 143_771 * MIB, count)
