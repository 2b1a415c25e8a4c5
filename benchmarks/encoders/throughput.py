"""Measure how fast the encoders are at the released shapes, with random weights.

    python -m benchmarks.encoders.throughput --out result.json
    python -m benchmarks.encoders.throughput --tp 2 --out result.json

Times are from pixels or samples on the GPU to unit-norm features on the GPU: the median of several
runs, each between two CUDA events. With `--tp` the features of the engine on several GPUs are
compared with those of the engine on one instead.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.encoders.shapes import REAL, SMALL, randomise_weights, write_vision_checkpoint
from measurement.environment import fingerprint
from sglang_omni.engines.encoder.contract import EncoderSettings, VisionEncodeRequest
from sglang_omni.engines.encoder.launch import build_environment
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.models.ming.config import EncoderConfig
from sglang_omni.models.ming.encoders.attention import (
    BACKENDS,
    load_attention,
    select_backend,
)
from sglang_omni.models.ming.encoders.audio import AudioEncoder
from sglang_omni.models.ming.encoders.grid import compute_grid
from sglang_omni.models.ming.encoders.mel import compute_log_mel
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.media_rules import SAMPLE_RATE
from sglang_omni.models.weights import use_device_and_dtype
from sglang_omni.protocol.errors import ConfigError

WARM_UPS = 3
RUNS = 11
CLIP_SECONDS = 30
TP_TOLERANCE = 0.999

Row = dict[str, Any]
Compute = Callable[[], Any]


def median_ms(compute: Compute, device: torch.device) -> float:
    """Return the median time of a run in milliseconds."""
    for _ in range(WARM_UPS):
        compute()
    times = []
    for _ in range(RUNS):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            compute()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
        else:
            started_at = time.perf_counter()
            compute()
            times.append((time.perf_counter() - started_at) * 1e3)
    return statistics.median(times)


def time_row(row: Row, compute: Compute, device: torch.device) -> Row:
    """Add a time to `row`, or why there is none: binaries of a kernel may be missing."""
    try:
        return row | {"ms": round(median_ms(compute, device), 3)}
    except Exception as error:
        return row | {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:160]}


@torch.inference_mode()
def measure_images(config: EncoderConfig, arguments: argparse.Namespace) -> Iterator[Row]:
    """Time images of every batch size by every attention kernel, with and without CUDA graphs."""
    device = torch.device(arguments.device)
    for backend in arguments.attention:
        try:
            encode, encode_by_graph = build_image_encoders(config, backend, arguments)
        except ConfigError as error:
            yield {"media": "image", "attention": backend, "failed": error.message}
            continue
        for batch in arguments.batches:
            side = arguments.side
            frames = torch.randint(0, 256, (batch, 1, side, side, 3), dtype=torch.uint8)
            frames = frames.to(device)
            row = {"media": "image", "attention": backend, "graph": False, "batch": batch}
            yield time_row(row, partial(encode, frames), device)
            if encode_by_graph is not None:
                yield time_row(row | {"graph": True}, partial(encode_by_graph, frames), device)


def build_image_encoders(
    config: EncoderConfig, backend: str, arguments: argparse.Namespace
) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor] | None]:
    """Return two functions from frames to features: eager, and by CUDA graphs.

    Frames are [batch, 1, side, side, 3].
    """
    from sglang_omni.models.ming.encoders.graphs import BlockGraphs
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears
    from sglang_omni.models.ming.encoders.vision import VisionEncoder

    device, dtype = torch.device(arguments.device), getattr(torch, arguments.dtype)
    with use_device_and_dtype(device, dtype):
        encoder = VisionEncoder(config, load_attention(backend), ParallelLinears(), device)
    randomise_weights(encoder)

    def inputs(frames: Tensor) -> Any:
        grids = [compute_grid(image.shape, config.vision) for image in frames]
        patches = torch.cat([patchify(image, config.vision) for image in frames])
        return encoder.vision.embed(patches, grids)

    def eager(frames: Tensor) -> Tensor:
        return encoder.encode(inputs(frames))

    if device.type != "cuda" or not encoder.attention.is_capturable:
        return eager, None
    patches = (arguments.side // config.vision.patch_size) ** 2
    try:
        graphs = BlockGraphs(encoder, [patches * batch for batch in arguments.batches])
    except Exception as error:
        print(f"{backend}: no graphs: {error}")
        return eager, None
    return eager, lambda frames: graphs(inputs(frames))


@torch.inference_mode()
def measure_audio(config: EncoderConfig, arguments: argparse.Namespace) -> Iterator[Row]:
    """Time one clip, and a batch of eight."""
    device, dtype = torch.device(arguments.device), getattr(torch, arguments.dtype)
    attention = load_attention(select_backend(device, dtype, config.audio.head_dim))
    with use_device_and_dtype(device, dtype):
        encoder = AudioEncoder(config, attention)
    randomise_weights(encoder)
    for batch in (1, 8):
        clips = torch.randn(batch, CLIP_SECONDS * SAMPLE_RATE, device=device) / 8

        def encode(clips: Tensor = clips) -> list[Tensor]:
            return encoder([compute_log_mel(clip, config.audio.n_mels) for clip in clips])

        row = {"media": f"audio {CLIP_SECONDS} s", "attention": attention.name, "batch": batch}
        yield time_row(row, encode, device)


def profile_image(config: EncoderConfig, arguments: argparse.Namespace) -> None:
    """Print the GPU times of one image's operators, with the first attention kernel."""
    from torch.profiler import ProfilerActivity, profile

    encode, _ = build_image_encoders(config, arguments.attention[0], arguments)
    side, device = arguments.side, torch.device(arguments.device)
    frames = torch.randint(0, 256, (1, 1, side, side, 3), dtype=torch.uint8, device=device)
    with torch.inference_mode():
        median_ms(lambda: encode(frames), device)
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
            encode(frames)
            if device.type == "cuda":
                torch.cuda.synchronize()
    key = "cuda_time_total" if device.type == "cuda" else "cpu_time_total"
    print(profiler.key_averages().table(sort_by=key, row_limit=25, max_name_column_width=70))


async def compare_ranks(config: EncoderConfig, arguments: argparse.Namespace) -> Row:
    """Compare features of the engine on `--tp` ranks with those on one, and time both."""
    ranks, side = arguments.tp, arguments.side
    images = torch.randint(0, 256, (4, 1, side, side, 3), dtype=torch.uint8).numpy()
    with tempfile.TemporaryDirectory() as folder:
        write_vision_checkpoint(Path(folder), config)
        single_rank, single_rank_ms = await encode_with_engine(Path(folder), 1, images, arguments)
        multi_rank, multi_rank_ms = await encode_with_engine(Path(folder), ranks, images, arguments)
    cosine = torch.cosine_similarity(single_rank, multi_rank, dim=-1).min().item()
    error = ((single_rank - multi_rank).abs().max() / single_rank.abs().max()).item()
    row = {"media": "image", "ranks": ranks, "ms": multi_rank_ms, "ms on one rank": single_rank_ms}
    return row | {"smallest cosine": cosine, "largest error": error, "equal": cosine > TP_TOLERANCE}


async def encode_with_engine(
    checkpoint: Path, ranks: int, images: Any, arguments: argparse.Namespace
) -> tuple[Tensor, float]:
    """Encode `images` one after the other. Return features, and the median milliseconds of one."""
    cuda = arguments.device == "cuda"
    settings = EncoderSettings(
        checkpoint,
        audio=False,
        device=arguments.device,
        dtype=arguments.dtype,
        tp_size=ranks,
        gpus=tuple(range(ranks)) if cuda else (),
        graphs=False,
    )
    factory = "sglang_omni.engines.encoder.worker:open_worker"
    process = EngineProcess(
        ProcessSpec("encoder", factory, settings, build_environment(settings, 8 if cuda else 1))
    )
    await process.start()
    rows, times = [], []
    try:
        for frames in [images[0], *images]:
            started_at = time.perf_counter()
            rows.append(await encode_image(process, frames))
            times.append((time.perf_counter() - started_at) * 1e3)
    finally:
        await process.stop()
    return torch.cat(rows), round(statistics.median(times[1:]), 2)


async def encode_image(process: EngineProcess, frames: Any) -> Tensor:
    """Return the features [tokens, hidden] of one image, in float32."""
    pixels = SharedArray()
    request = VisionEncodeRequest(pixels, pixels.write(frames), SharedArray())
    (output,) = [output async for output in process.submit(request)]
    rows = torch.from_numpy(request.rows.read(output.layout).copy())
    return rows.view(torch.bfloat16).float() if output.layout.dtype == "<u2" else rows


def print_row(row: Row) -> None:
    """Print one row as a line."""
    labels = "  ".join(
        f"{key} {value}" for key, value in row.items() if key not in ("ms", "failed")
    )
    time = f"{row['ms']:9.2f} ms" if "ms" in row else f"  failed: {row['failed']}"
    rate = f"{row['batch'] / row['ms'] * 1e3:9.1f} /s" if "ms" in row and "batch" in row else ""
    print(f"{labels:60} {time}{rate}", flush=True)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--attention", nargs="+", default=list(BACKENDS), choices=BACKENDS)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--side", type=int, default=1024, help="of the square images, in pixels")
    parser.add_argument("--small", action="store_true", help="small shapes, to try the benchmark")
    parser.add_argument("--profile", action="store_true", help="only profile one image")
    parser.add_argument("--tp", type=int, default=1, help="only compare this many ranks with one")
    return parser.parse_args()


def measure(config: EncoderConfig, arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure what the command line asks for."""
    if arguments.tp > 1:
        yield asyncio.run(compare_ranks(config, arguments))
        return
    from sglang_omni.engines.encoder.parallel import join_group
    from sglang_omni.engines.runtime.ports import find_rendezvous_port

    join_group(0, 1, find_rendezvous_port(), torch.device(arguments.device))
    if arguments.profile:
        profile_image(config, arguments)
        return
    yield from measure_images(config, arguments)
    yield from measure_audio(config, arguments)


def main() -> int:
    """Measure, print and write. Return 1 if ranks disagree."""
    arguments = parse_arguments()
    config = SMALL if arguments.small else REAL
    about = fingerprint()
    print(json.dumps(about))
    rows = []
    for row in measure(config, arguments):
        print_row(row)
        rows.append(row)
    recorded_arguments = {name: value for name, value in vars(arguments).items() if name != "out"}
    result = {"environment": about, "arguments": recorded_arguments, "rows": rows}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.get("equal", True) for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
