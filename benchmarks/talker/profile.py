"""Where the time of a talker's step goes: its kernels, at the released shapes with random weights.

    python -m benchmarks.talker.profile --batch 128 --out result.json
    python -m benchmarks.talker.profile --shape deep --batch 1 --out result.json

Each graph of a step is replayed alone under PyTorch's profiler. What a kernel costs is the time
from the end of the one in front of it to its own. Kernels of one name are told apart by how many
come between them and the last attention.
"""

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.talker.shapes import random_speech_model
from benchmarks.talker.steps import SHAPES, WARM_UPS, admission, run_steps
from benchmarks.tools.kernel_times import KernelEvent, kernel_costs_us
from measurement.environment import fingerprint
from sglang_omni.engines.speech.launch import environment
from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor

RUNS = 5
SHOWN = 14
NAME_LENGTH = 60

Row = dict[str, Any]


def kernels_of(replay: Callable[[], object], runs: int) -> list[list[KernelEvent]]:
    """The kernels of each of several calls, in the order in which they ended.

    Raises `RuntimeError` if the calls did not run equally many.
    """
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(runs):
            replay()
            torch.cuda.synchronize()
    found = [
        KernelEvent(event.name, event.time_range.end)
        for event in profiler.events()
        if event.device_type == DeviceType.CUDA
    ]
    found.sort(key=lambda one: one.end)
    count, rest = divmod(len(found), runs)
    if rest or not count:
        raise RuntimeError(f"the profiler saw {len(found)} kernels in {runs} calls")
    return [found[first : first + count] for first in range(0, len(found), count)]


def places(kernels: Sequence[KernelEvent]) -> list[str]:
    """A label for every kernel: its name, and how many came since the last attention."""
    labels, since = [], 0
    for one in kernels:
        since = 0 if "attention" in one.name else since + 1
        labels.append(f"{one.name[:NAME_LENGTH]} +{min(since, 9)}")
    return labels


def costs(calls: Sequence[Sequence[KernelEvent]]) -> list[Row]:
    """What kernels of each label cost in a call: microseconds in all, mean, count; the dearest
    first. The first kernel of a call has none in front of it and is left out."""
    total, count = defaultdict[str, float](float), defaultdict[str, int](int)
    for kernels in calls:
        for label, took in zip(places(kernels)[1:], kernel_costs_us(kernels), strict=True):
            total[label] += took
            count[label] += 1
    rows = [
        {
            "kernel": label,
            "us": round(took / len(calls), 1),
            "mean_us": round(took / count[label], 2),
            "count": round(count[label] / len(calls), 1),
        }
        for label, took in total.items()
    ]
    return sorted(rows, key=lambda row: -row["us"])


def measure(executor: GraphExecutor, batch: int) -> dict[str, Any]:
    """Each part's time unprofiled in ms, and the costs of its kernels."""
    milliseconds = executor.time_parts(batch, RUNS)
    return {
        name: {"ms": round(milliseconds[name], 3), "kernels": costs(kernels_of(replay, RUNS))}
        for name, replay in executor.parts(batch).items()
    }


def show(name: str, part: dict[str, Any]) -> None:
    """Print a part's time and its dearest kernels."""
    print(f"{name}: {part['ms']} ms")
    for row in part["kernels"][:SHOWN]:
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
    os.environ |= environment("cuda", 1)
    # Graphs that are made before the profiler was ever there may show as one kernel.
    kernels_of(lambda: torch.zeros(1, device="cuda").add_(1), 1)
    model = random_speech_model(SHAPES[options.shape], torch.device("cuda"), torch.bfloat16)
    executor = GraphExecutor(model, options.batch, 1024, 1024)
    slots, voice = range(options.batch), model.voices["voice"]
    executor.prefill([admission(slot, voice) for slot in slots])
    run_steps(executor, slots, WARM_UPS)
    parts = measure(executor, options.batch)
    for name, part in parts.items():
        show(name, part)
    arguments = {"shape": options.shape, "batch": options.batch}
    result = {"environment": fingerprint(), "arguments": arguments, "parts": parts}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
