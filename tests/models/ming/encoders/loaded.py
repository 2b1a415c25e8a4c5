"""The encoders of the tiny checkpoint, loaded once, and this process as a group of one rank."""

import os
from typing import TYPE_CHECKING

import pytest
import torch

# Before anything imports sglang, which looks for a GPU at import.
if not torch.cuda.is_available():
    os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

from sglang_omni.models.ming.encoders.attention import load_attention
from sglang_omni.models.ming.encoders.audio import AudioEncoder, load_audio
from sglang_omni.models.ming.encoders.vision_reference import (
    VisionReference,
    load_vision_reference,
)
from tests.testing.golden import TINY

if TYPE_CHECKING:
    from sglang_omni.models.ming.encoders.vision import VisionEncoder

CPU = torch.device("cpu")


@pytest.fixture(scope="session")
def audio() -> AudioEncoder:
    """The audio encoder in float32."""
    return load_audio(TINY, load_attention("sdpa"), CPU, torch.float32)


@pytest.fixture(scope="session")
def reference() -> VisionReference:
    """The plain vision encoder in float32."""
    return load_vision_reference(TINY)


@pytest.fixture(scope="session")
def one_rank() -> None:
    """SGLang's parallel state with this process alone in it."""
    from sglang.srt.distributed import parallel_state

    from sglang_omni.engines.encoder.parallel import join_group
    from sglang_omni.engines.runtime.ports import find_rendezvous_port

    # Two folders of tests ask for it in one process.
    if not parallel_state.model_parallel_is_initialized():
        join_group(0, 1, find_rendezvous_port(), CPU)


@pytest.fixture(scope="session")
def plain() -> "VisionEncoder":
    """The vision encoder on PyTorch's layers in float32."""
    from sglang_omni.models.ming.encoders.linears import PlainLinears
    from sglang_omni.models.ming.encoders.vision import load_vision

    return load_vision(TINY, load_attention("sdpa"), PlainLinears(), CPU, torch.float32)


@pytest.fixture(scope="session")
def serving(one_rank: None) -> "VisionEncoder":
    """The vision encoder on SGLang's layers in float32."""
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears
    from sglang_omni.models.ming.encoders.vision import load_vision

    return load_vision(TINY, load_attention("sdpa"), ParallelLinears(), CPU, torch.float32)
