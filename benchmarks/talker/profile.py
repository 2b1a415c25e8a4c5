"""List the kernels of a talker's step and their times, at the released shapes with random weights.

    python -m benchmarks.talker.profile --batch 128 --out result.json
    python -m benchmarks.talker.profile --shape deep --batch 1 --out result.json

Each graph of a step is replayed alone under PyTorch's profiler. The cost of a kernel is the time
from the end of the previous kernel to its own end. Kernels of the same name are distinguished by
the number of kernels between them and the last attention.
"""

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.talker.shapes import random_speech_model
from benchmarks.talker.steps import SHAPES, WARM_UPS, build_admission, time_steps
from benchmarks.tools.kernel_times import KernelEvent, kernel_costs_us
from measurement.environment import fingerprint
from sglang_omni.engines.speech.launch import build_environment
from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor

RUNS = 5
MAX_SHOWN = 14
NAME_LENGTH = 60

Row = dict[str, Any]


def record_kernels(replay: Callable[[], object], runs: int) -> list[list[KernelEvent]]:
    """Return the kernels of each of `runs` calls, in the order in which they ended.

    Raises:
        RuntimeError: The calls did not run the same number of kernels.
    """
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(runs):
            replay()
            torch.cuda.synchronize()
    kernels = [
        KernelEvent(event.name, event.time_range.end)
        for event in profiler.events()
        if event.device_type == DeviceType.CUDA
    ]
    kernels.sort(key=lambda kernel: kernel.end)
    count, remainder = divmod(len(kernels), runs)
    if remainder or not count:
        raise RuntimeError(f"the profiler saw {len(kernels)} kernels in {runs} calls")
    return [kernels[first : first + count] for first in range(0, len(kernels), count)]


def label_kernels(kernels: Sequence[KernelEvent]) -> list[str]:
    """Label every kernel with its name and the number of kernels since the last attention."""
    labels, since_attention = [], 0
    for kernel in kernels:
        since_attention = 0 if "attention" in kernel.name else since_attention + 1
        labels.append(f"{kernel.name[:NAME_LENGTH]} +{min(since_attention, 9)}")
    return labels


def summarise_costs(calls: Sequence[Sequence[KernelEvent]]) -> list[Row]:
    """Return the costs of the kernels of each label in a call, the most expensive first.

    A row has the total and the mean in microseconds, and the count. The first kernel of a call has
    no previous one and is left out.
    """
    total, count = defaultdict[str, float](float), defaultdict[str, int](int)
    for kernels in calls:
        for label, microseconds in zip(
            label_kernels(kernels)[1:], kernel_costs_us(kernels), strict=True
        ):
            total[label] += microseconds
            count[label] += 1
    rows = [
        {
            "kernel": label,
            "us": round(microseconds / len(calls), 1),
            "mean_us": round(microseconds / count[label], 2),
            "count": round(count[label] / len(calls), 1),
        }
        for label, microseconds in total.items()
    ]
    return sorted(rows, key=lambda row: -row["us"])


def measure_parts(executor: GraphExecutor, batch: int) -> dict[str, Any]:
    """Return each part's time without the profiler, in ms, and the costs of its kernels."""
    milliseconds = executor.time_parts(batch, RUNS)
    return {
        name: {
            "ms": round(milliseconds[name], 3),
            "kernels": summarise_costs(record_kernels(replay, RUNS)),
        }
        for name, replay in executor.parts(batch).items()
    }


def print_part(name: str, part: dict[str, Any]) -> None:
    """Print the time of a part and its most expensive kernels."""
    print(f"{name}: {part['ms']} ms")
    for row in part["kernels"][:MAX_SHOWN]:
        print(
            f"  {row['us']:9.1f} us  {row['count']:6.1f} x {row['mean_us']:7.2f}  {row['kernel']}"
        )


def main() -> None:
    """Parse the command line, profile every part, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="released")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    os.environ |= build_environment("cuda", 1)
    # Graphs captured before the profiler's first use may show as one kernel.
    record_kernels(lambda: torch.zeros(1, device="cuda").add_(1), 1)
    model = random_speech_model(SHAPES[options.shape], torch.device("cuda"), torch.bfloat16)
    executor = GraphExecutor(model, options.batch, 1024, 1024)
    slots, voice = range(options.batch), model.voices["voice"]
    executor.prefill([build_admission(slot, voice) for slot in slots])
    time_steps(executor, slots, WARM_UPS)
    parts = measure_parts(executor, options.batch)
    for name, part in parts.items():
        print_part(name, part)
    arguments = {"shape": options.shape, "batch": options.batch}
    result = {"environment": fingerprint(), "arguments": arguments, "parts": parts}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
