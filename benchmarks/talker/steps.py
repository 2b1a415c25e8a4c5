"""Measure how fast the talker engine steps at the released shapes, with random weights.

    python -m benchmarks.talker.steps --out result.json
    python -m benchmarks.talker.steps --shape deep --batches 1 --out result.json
    python -m benchmarks.talker.steps --fp8 --batches 32 64 128 --out result.json

A step makes one patch, 320 ms of speech, for every stream: backbone, ten guided flow steps,
aggregator, stop head and VAE. `step ms` is the time from step to step of the running engine, host
included. The parts are timed by CUDA events, each graph alone.
"""

import argparse
import json
import os
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.talker.shapes import DEEP, TALKER, VOICE_PATCHES, random_speech_model
from measurement.environment import fingerprint
from sglang_omni.engines.speech.launch import build_environment
from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor
from sglang_omni.models.ming.speech.fast.graphs import BATCH_SIZES
from sglang_omni.models.ming.speech.model import MingSpeechInput
from sglang_omni.models.ming.speech.prompt import PromptIds
from sglang_omni.models.ming.speech.voices import VoicePrompt
from sglang_omni.models.speech import Admission

SHAPES = {"released": TALKER, "deep": DEEP}
PROMPT_TOKENS = 150
PATCH_SECONDS = 0.32
WARM_UPS = 5
PART_RUNS = 15

Row = dict[str, Any]


def build_admission(slot: int, voice: VoicePrompt) -> Admission:
    """Build a request whose prompt is as long as that of a sentence after a voice prompt."""
    ids = tuple(range(100, 100 + PROMPT_TOKENS))
    prompt = PromptIds(ids, (), PROMPT_TOKENS - VOICE_PATCHES, VOICE_PATCHES)
    return Admission(slot, MingSpeechInput(prompt, voice), seed=slot, segment=0)


def time_steps(executor: GraphExecutor, slots: range, count: int) -> float:
    """Step all the slots `count` times as the worker does. Return seconds per step."""
    started_at, pending = time.perf_counter(), False
    for _ in range(count):
        executor.begin(slots)
        if pending:
            executor.collect()
        executor.read_stop_probabilities()
        executor.finish([False] * len(slots))
        pending = True
    executor.collect()
    torch.cuda.synchronize()
    return (time.perf_counter() - started_at) / count


def measure_idle_share(executor: GraphExecutor, slots: range, steps: int) -> float:
    """Return the share of time in which the CUDA stream was idle between steps.

    The time is that of `steps` steps.
    """
    marks = [tuple(torch.cuda.Event(enable_timing=True) for _ in "ab") for _ in range(steps)]
    for number, (start, end) in enumerate(marks):
        start.record(executor.steps)
        executor.begin(slots)
        end.record(executor.steps)
        if number:
            executor.collect()
        executor.read_stop_probabilities()
        executor.finish([False] * len(slots))
    torch.cuda.synchronize()
    gaps = [end.elapsed_time(start) for (_, end), (start, _) in pairwise(marks)]
    return sum(gaps) / marks[0][0].elapsed_time(marks[-1][1])


def measure_batch(executor: GraphExecutor, voice: VoicePrompt, batch: int, steps: int) -> Row:
    """Measure step time, parts and idle share at `batch` streams."""
    slots = range(batch)
    executor.prefill([build_admission(slot, voice) for slot in slots])
    time_steps(executor, slots, WARM_UPS)
    seconds = statistics.median(time_steps(executor, slots, steps // 4) for _ in range(4))
    parts = executor.time_parts(batch, PART_RUNS)
    return {
        "batch": batch,
        "step_ms": round(seconds * 1e3, 3),
        "audio_s_per_s": round(batch * PATCH_SECONDS / seconds, 1),
        "rtf": round(seconds / PATCH_SECONDS, 5),
        **{f"{name}_ms": round(value, 3) for name, value in parts.items()},
        "idle": round(measure_idle_share(executor, slots, steps), 4),
    }


def main() -> None:
    """Parse the command line, measure every batch size, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="released")
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCH_SIZES))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fp8", action="store_true", help="the flow model in FP8")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    os.environ |= build_environment("cuda", 1)
    device = torch.device("cuda")
    model = random_speech_model(SHAPES[options.shape], device, torch.bfloat16)
    started_at = time.perf_counter()
    max_batch = max(options.batches)
    executor = GraphExecutor(model, max_batch, 1024, 1024, fp8=options.fp8)
    capture_s = time.perf_counter() - started_at
    print(f"captured in {capture_s:.1f} s")
    rows = []
    for batch in options.batches:
        rows.append(measure_batch(executor, model.voices["voice"], batch, options.steps))
        print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    result = {
        "environment": fingerprint(),
        "arguments": {name: value for name, value in vars(options).items() if name != "out"},
        "capture_s": round(capture_s, 1),
        "rows": rows,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
