"""Requests for an encoder engine, and the features that come back."""

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.encoder.contract import AudioEncodeRequest, Encoded, VisionEncodeRequest
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.shared_array import SharedArray


def picture(frames: Tensor | np.ndarray) -> VisionEncodeRequest:
    """Frames uint8 [frames, height, width, 3] as a request."""
    pixels = SharedArray()
    return VisionEncodeRequest(pixels, pixels.write(np.asarray(frames)), SharedArray())


def clip(samples: Tensor | np.ndarray) -> AudioEncodeRequest:
    """Float32 samples [samples] as a request."""
    memory = SharedArray()
    return AudioEncodeRequest(memory, memory.write(np.asarray(samples)), SharedArray())


async def encode(
    process: EngineProcess, request: VisionEncodeRequest | AudioEncodeRequest
) -> Tensor:
    """Submit a request; its features [rows, hidden]."""
    (output,) = [output async for output in process.submit(request)]
    return features(request, output)


def features(request: VisionEncodeRequest | AudioEncodeRequest, output: object) -> Tensor:
    """What an engine wrote for a request."""
    assert isinstance(output, Encoded)
    return torch.from_numpy(request.rows.read(output.layout).copy())
