"""Time requests from the thinker's states to PNG, and the matrix rate of the card."""

import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from sglang_omni.media.png import encode_png
from sglang_omni.models.image import ImageInput
from sglang_omni.models.ming.image.model import MingImageModel

Row = dict[str, Any]
GB = 1e9
PARTS = ("start", "denoise", "decode", "png")
MATRIX_SIDE = 8192


def synchronize(device: torch.device) -> None:
    """Wait until the device has done its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def draw(
    model: MingImageModel, inputs: Sequence[ImageInput], device: torch.device
) -> tuple[list[np.ndarray], dict[str, float]]:
    """Draw images together. Return their pixels, and the seconds of each part and in total."""
    times = [time.perf_counter()]

    def mark() -> None:
        synchronize(device)
        times.append(time.perf_counter())

    images = [model.start(image_input) for image_input in inputs]
    mark()
    while model.progress(images[0])[0] < model.progress(images[0])[1]:
        model.advance(images)
    mark()
    pixels = [model.finish(image) for image in images]
    mark()
    for image in pixels:
        encode_png(image)
    mark()
    seconds = [end - start for start, end in itertools.pairwise(times)]
    return pixels, dict(zip(PARTS, seconds, strict=True)) | {"total": times[-1] - times[0]}


def time_requests(
    model: MingImageModel, inputs: Sequence[ImageInput], runs: int, device: torch.device
) -> Row:
    """Return the medians of several runs in seconds, after a short one, and the peak memory."""
    draw(model, [replace(one, steps=3) for one in inputs], device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    seconds = [draw(model, inputs, device)[1] for _ in range(runs)]
    row: Row = {
        f"{part}_s": round(statistics.median(run[part] for run in seconds), 4)
        for part in ("total", *PARTS)
    }
    row["totals_s"] = [round(run["total"], 4) for run in seconds]
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        row["peak_allocated_gb"] = round(torch.cuda.max_memory_allocated() / GB, 2)
        row["peak_reserved_gb"] = round(torch.cuda.max_memory_reserved() / GB, 2)
        row["used_on_device_gb"] = round((total - free) / GB, 2)
    return row


def measure_matrix_rate(
    device: torch.device, dtype: torch.dtype, seconds: float, side: int = MATRIX_SIDE
) -> Row:
    """Return TFLOP/s of square products of random matrices: in a short burst, and sustained.

    A long run is slower, as the card lowers its clock to keep its power limit; drawing an image is
    a long run.
    """
    one, other = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))

    def run(count: int) -> float:
        synchronize(device)
        started_at = time.perf_counter()
        for _ in range(count):
            one @ other
        synchronize(device)
        return (time.perf_counter() - started_at) / count

    run(3)
    work = 2 * side**3 / 1e12
    burst = run(10)
    run(max(1, round(seconds / 2 / burst)))
    sustained = run(max(1, round(seconds / 2 / burst)))
    return {
        "matrix side": side,
        "burst_tflops": round(work / burst, 4),
        "sustained_tflops": round(work / sustained, 4),
    }
