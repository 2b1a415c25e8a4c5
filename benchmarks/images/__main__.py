"""Measure how fast images are drawn at the released shapes, with random weights.

    python -m benchmarks.images --out result.json
    python -m benchmarks.images --backend fast reference --fp8 --out result.json

Times are of whole requests: from the thinker's states at the query tokens to a PNG. With several
variants, the images of some seeds are compared with those of the first: PSNR and SSIM.
"""

import argparse
import gc
import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.images.quality import compute_psnr, compute_ssim
from benchmarks.images.shapes import REAL, SMALL, ImageShapes, random_image_modules
from benchmarks.images.timing import Row, draw, measure_matrix_rate, time_requests
from benchmarks.images.work import Case, build_input, count_operations, list_cases
from measurement.environment import fingerprint
from sglang_omni.models.ming.image.backend import Backend
from sglang_omni.models.ming.image.model import MingImageModel, build_image_model

STEPS, SIDES = 30, (1024, 512)
SMALL_STEPS, SMALL_SIDES = 3, (512, 512)


def list_variants(arguments: argparse.Namespace) -> list[tuple[Backend, bool]]:
    """Return the back ends to measure, and whether each is in FP8."""
    variants: list[tuple[Backend, bool]] = [(backend, False) for backend in arguments.backend]
    return [*variants, ("fast", True)] if arguments.fp8 else variants


def measure_cases(
    model: MingImageModel,
    shapes: ImageShapes,
    cases: list[Case],
    rates: Row,
    arguments: argparse.Namespace,
) -> Iterator[Row]:
    """Time each case, and compare its rate of operations with that of matrix products."""
    device = torch.device(arguments.device)
    for case in cases:
        inputs = [build_input(shapes, case, seed) for seed in range(case.batch)]
        row = vars(case) | time_requests(model, inputs, arguments.runs, device)
        operations = count_operations(shapes, case)
        for name, count in vars(operations).items():
            row[f"{name}_tflops"] = round(count / row["denoise_s"] / 1e12, 4)
        # The fast back end does the useful operations only.
        for rate in ("burst", "sustained"):
            share = row["useful_tflops"] / rates[f"{rate}_tflops"]
            row[f"share_of_{rate}_rate"] = round(share, 4)
        yield row


def draw_seeds(
    model: MingImageModel, shapes: ImageShapes, case: Case, arguments: argparse.Namespace
) -> list[np.ndarray]:
    """Draw one image per seed."""
    device = torch.device(arguments.device)
    images = []
    for seed in range(arguments.seeds):
        images += draw(model, [build_input(shapes, case, seed)], device)[0]
    return images


def compare_images(images: list[np.ndarray], expected: list[np.ndarray]) -> Row:
    """Return the mean and the worst similarity of pairs of images."""
    pairs = list(zip(images, expected, strict=True))
    row: Row = {"seeds": len(pairs)}
    for name, compute in (("psnr_db", compute_psnr), ("ssim", compute_ssim)):
        values = [compute(one, other) for one, other in pairs]
        row[name] = {"mean": round(statistics.mean(values), 4), "min": round(min(values), 4)}
    return row


def measure(arguments: argparse.Namespace) -> Row:
    """Measure what the command line asks for."""
    shapes = SMALL if arguments.small else REAL
    device, dtype = torch.device(arguments.device), getattr(torch, arguments.dtype)
    steps, sides = (SMALL_STEPS, SMALL_SIDES) if arguments.small else (STEPS, SIDES)
    cases = [
        case
        for case in list_cases(steps, sides)
        if not arguments.cases or case.name in arguments.cases
    ]
    side = 256 if arguments.small else 8192
    rates = measure_matrix_rate(device, dtype, arguments.matrix_seconds, side)
    print(json.dumps(rates), flush=True)
    small = next(case for case in list_cases(steps, sides) if case.name == "small")
    rows: list[Row] = []
    quality: list[Row] = []
    expected: list[np.ndarray] = []
    for backend, fp8 in list_variants(arguments):
        variant = {"backend": backend, "fp8": fp8}
        model = build_image_model(random_image_modules(shapes, device, dtype), backend, fp8=fp8)
        for row in measure_cases(model, shapes, cases, rates, arguments):
            rows.append(variant | row)
            print(json.dumps(rows[-1]), flush=True)
        images = draw_seeds(model, shapes, small, arguments)
        if expected and images:
            quality.append(variant | {"side": small.side} | compare_images(images, expected))
            print(json.dumps(quality[-1]), flush=True)
        expected = expected or images
        # The next model needs the memory.
        del model
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return {"matrix_rate": rates, "rows": rows, "quality": quality}


def parse_arguments(command_line: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    names = [case.name for case in list_cases(STEPS, SIDES)]
    parser = argparse.ArgumentParser(prog="benchmarks.images", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    parser.add_argument("--device", default=device)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--backend", nargs="+", default=["fast"], choices=("fast", "reference"))
    parser.add_argument("--fp8", action="store_true", help="measure the fast back end in FP8 too")
    parser.add_argument("--cases", nargs="*", choices=names, help="default: all")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each case")
    parser.add_argument("--seeds", type=int, default=20, help="images to compare variants by")
    parser.add_argument("--matrix-seconds", type=float, default=6.0, help="of matrix products")
    parser.add_argument("--small", action="store_true", help="small shapes, to try the benchmark")
    return parser.parse_args(command_line)


def main(command_line: list[str] | None = None) -> int:
    """Measure, print and write."""
    arguments = parse_arguments(command_line)
    about = fingerprint() | {"allocator": os.environ.get("PYTORCH_ALLOC_CONF", "default")}
    print(json.dumps(about))
    recorded_arguments = {name: value for name, value in vars(arguments).items() if name != "out"}
    result = {"environment": about, "arguments": recorded_arguments, **measure(arguments)}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
