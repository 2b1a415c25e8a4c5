"""Measure whether a stream depends on the other streams of its batch.

The shapes are those of the released model, in BF16.

    python -m benchmarks.talker.parity --out result.json
    python -m benchmarks.talker.parity --fp8 --out result.json
    python -m benchmarks.talker.parity --model DIR --requests 400 --out result.json

Teacher-forced: 20 requests, each alone and among 63 others, with each patch from the same state,
until the stop head fires. Reported are the largest relative error of the latents, and the stop
decisions that differ although neither probability is near 0.5. Free-running: 100 requests (or
`--requests`), alone and in batches of 64, each ended by its stop head, which is fitted to fire
after some tens of patches. Reported is how many have equal patch counts. `--fp8` runs all of it
with the flow model in FP8, and adds the error of each patch against bfloat16 from the same state.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.client.texts import TEXTS
from benchmarks.talker.shapes import TALKER, random_speech_model
from benchmarks.talker.steps import build_admission
from measurement.environment import fingerprint
from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.engines.speech.launch import build_environment
from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor
from sglang_omni.models.ming.speech.fast.ops import LibraryOps
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.fast.step import FastStep
from sglang_omni.models.ming.speech.model import MingSpeechInput
from sglang_omni.models.ming.speech.modules import SpeechModules, load_modules
from sglang_omni.models.ming.speech.prompt import SpeechPrompt
from sglang_omni.models.ming.speech.talker import STOP_THRESHOLD
from sglang_omni.models.speech import Admission

BATCH, REQUESTS = 64, 100
FORCED_REQUESTS, FORCED_STEPS = 20, 40
MAX_PATCHES, MIN_PATCHES = 60, 3
MIDDLE, SLOPE, RIDGE = 25, 0.5, 1e-2
STOP_MARGIN = 0.02
TOLERANCE, EQUAL_SHARE = 3e-2, 0.95


BuildAdmission = Callable[[int, int], Admission]
"""Builds the admission of a slot for a request, by its number."""


def fixed_prompt_start(model: SpeechModules) -> BuildAdmission:
    """Return a start with the same prompt every time; the request number is its seed."""
    (voice,) = model.voices.values()
    return lambda slot, number: replace(build_admission(slot, voice), seed=number)


def sentences_start(model: SpeechModules) -> BuildAdmission:
    """Return a start with sentences in turn, in the first voice; the request number is the seed."""
    voice = next(iter(model.voices.values()))
    english = [text for text in TEXTS if text.isascii()]

    def start(slot: int, number: int) -> Admission:
        text = SpeechPrompt(
            english[number % len(english)],
            prompt_text=voice.text,
            prompt_patches=len(voice.embeds),
            speakers=0 if voice.speaker is None else 1,
        )
        return Admission(slot, MingSpeechInput(model.tokenizer.assemble(text), voice), number, 0)

    return start


@torch.inference_mode()
def train_stop_head(model: SpeechModules, executor: GraphExecutor, start: BuildAdmission) -> None:
    """Fit the stop head to fire after some tens of patches, as a trained one would.

    Random states hold a little information about the position in the text. The head becomes the
    best linear estimate of the position from them (ridge regression over a batch of streams), as a
    logit that grows by `SLOPE` per patch and is zero at patch `MIDDLE`.
    """
    # On the CPU: the talker's process leaves cuBLAS no memory beyond what its steps need.
    states = collect_states(model, executor, start).cpu()
    rows, mean = states.flatten(0, 1), states.mean(dim=(0, 1))
    patch = torch.arange(MAX_PATCHES).repeat_interleave(BATCH).float()
    rows, patch = rows - mean, patch - patch.mean()
    gram = rows.T @ rows
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    estimate = torch.linalg.solve(gram, rows.T @ patch)
    estimate *= SLOPE * patch.square().sum() / ((rows @ estimate) @ patch)
    offset = SLOPE * ((MAX_PATCHES - 1) / 2 - MIDDLE) - mean @ estimate
    head = model.talker.stop_head
    head.weight.copy_(torch.stack((-estimate / 2, estimate / 2)))
    head.bias.copy_(torch.stack((-offset / 2, offset / 2)))


def collect_states(model: SpeechModules, executor: GraphExecutor, start: BuildAdmission) -> Tensor:
    """Return the states that the stop head sees, of a batch of streams: [patch, row, dim]."""
    slots, index = list(range(BATCH)), torch.arange(BATCH, device="cuda")
    step = FastStep(model.talker, executor.state)
    executor.prefill([start(slot, slot) for slot in slots])
    states = []
    for _ in range(MAX_PATCHES):
        states.append(step.run_backbone(index, LibraryOps())[0].float())
        torch.cuda.synchronize()
        run_step(executor, slots)
    return torch.stack(states)


def open_executor(model: SpeechModules, *, fp8: bool) -> GraphExecutor:
    """Open an executor with slots for a batch and one request alone."""
    return GraphExecutor(model, BATCH + 1, 512, 256, fp8=fp8)


def run_step(executor: GraphExecutor, slots: list[int]) -> list[float]:
    """Step these slots, wait for everything and return the stop probabilities."""
    executor.begin(slots)
    stops = executor.read_stop_probabilities()
    executor.finish([False] * len(slots))
    executor.collect()
    return stops


def copy_slot(state: SlotState, source: int, target: int) -> None:
    """Copy the state of one slot to another."""
    for rows in (state.ring, state.next_embed, state.lengths, state.patches):
        rows[target] = rows[source]
    for cache in (state.keys, state.values):
        cache[:, target] = cache[:, source]


def copy_state(source: SlotState, target: SlotState) -> None:
    """Copy all slots from another state."""
    for name in ("ring", "next_embed", "lengths", "patches", "keys", "values"):
        getattr(target, name).copy_(getattr(source, name))


def measure_fp8_error(
    bf16: GraphExecutor, fp8: GraphExecutor, start: BuildAdmission
) -> dict[str, Any]:
    """Compare the patches of a batch in FP8 with those in bfloat16, each from the same state."""
    slots = list(range(BATCH))
    for executor in (bf16, fp8):
        executor.prefill([start(slot, slot) for slot in slots])
    errors, squares, powers = [], 0.0, 0.0
    for _ in range(FORCED_STEPS):
        copy_state(bf16.state, fp8.state)
        run_step(bf16, slots)
        run_step(fp8, slots)
        entry = bf16.state.entry(bf16.state.patches[:BATCH] - 1)
        bf16_patch, fp8_patch = (
            executor.state.ring[slots, entry].float() for executor in (bf16, fp8)
        )
        errors.append(((bf16_patch - fp8_patch).abs().max() / bf16_patch.abs().max()).item())
        squares += (bf16_patch - fp8_patch).square().mean().item()
        powers += bf16_patch.square().mean().item()
    return {"largest": max(errors), "rms": (squares / powers) ** 0.5, "steps": FORCED_STEPS}


def compare_teacher_forced(executor: GraphExecutor, start: BuildAdmission) -> dict[str, Any]:
    """Compare requests alone and among 63 others, until each stop head fires."""
    errors, stop_flips = [], 0
    for number in range(FORCED_REQUESTS):
        for error, alone, batched in run_twins(executor, start, number):
            errors.append(error)
            decisions_differ = (alone > STOP_THRESHOLD) != (batched > STOP_THRESHOLD)
            stop_flips += (
                decisions_differ
                and min(abs(p - STOP_THRESHOLD) for p in (alone, batched)) >= STOP_MARGIN
            )
    return {
        "largest_error": max(errors),
        "median_error": median(errors),
        "stop_flips": stop_flips,
        "steps": len(errors),
    }


def run_twins(
    executor: GraphExecutor, start: BuildAdmission, number: int
) -> Iterator[tuple[float, float, float]]:
    """Step slot 0 alone and its twin, slot 1, among 63 others, each step from the same state.

    Yields the relative error of the patch, and both stop probabilities.
    """
    state = executor.state
    other_admissions = [start(slot, FORCED_REQUESTS + slot) for slot in range(2, BATCH + 1)]
    executor.prefill([start(0, number), start(1, number), *other_admissions])
    for count in range(1, FORCED_STEPS + 1):
        alone = run_step(executor, [0])[0]
        batched = run_step(executor, list(range(1, BATCH + 1)))[0]
        entry = state.entry(state.patches[0] - 1)
        alone_patch, batched_patch = state.ring[0, entry].float(), state.ring[1, entry].float()
        yield (
            ((alone_patch - batched_patch).abs().max() / alone_patch.abs().max()).item(),
            alone,
            batched,
        )
        if count > MIN_PATCHES + 1 and alone > STOP_THRESHOLD:
            return
        copy_slot(state, 0, 1)


def count_patches(executor: GraphExecutor, numbers: list[int], start: BuildAdmission) -> list[int]:
    """Return how many patches each request makes before its stop head fires, all in one batch."""
    executor.prefill([start(slot, number) for slot, number in enumerate(numbers)])
    counts, running = [0] * len(numbers), list(range(len(numbers)))
    while running:
        stops = run_step(executor, running)
        ended = set()
        for slot, stop in zip(running, stops, strict=True):
            counts[slot] += 1
            fired = counts[slot] > MIN_PATCHES + 1 and stop > STOP_THRESHOLD
            if fired or counts[slot] == MAX_PATCHES:
                ended.add(slot)
        running = [slot for slot in running if slot not in ended]
    return counts


def compare_free_running(
    executor: GraphExecutor, start: BuildAdmission, requests: int
) -> dict[str, Any]:
    """Compare the patch counts of `requests` requests alone and in batches."""
    numbers = list(range(requests))
    alone = [count_patches(executor, [number], start)[0] for number in numbers]
    batched = [
        count
        for first in range(0, requests, BATCH)
        for count in count_patches(executor, numbers[first : first + BATCH], start)
    ]
    equal = sum(a == b for a, b in zip(alone, batched, strict=True))
    capped = sum(count == MAX_PATCHES for count in alone)
    return {
        "equal_counts": equal,
        "requests": requests,
        "capped": capped,
        "different_counts": len(set(alone)),
        "counts": alone,
        "counts_together": batched,
    }


def load_model(folder: Path | None) -> tuple[SpeechModules, BuildAdmission]:
    """Load the model, and return it with the start of its requests.

    Without a folder its weights are random.
    """
    if folder is None:
        model = random_speech_model(TALKER, torch.device("cuda"), torch.bfloat16)
        return model, fixed_prompt_start(model)
    settings = TalkerSettings(folder, device="cuda", dtype="bfloat16")
    model = load_modules(settings.checkpoint, settings.device, settings.dtype)
    return model, sentences_start(model)


def measure(folder: Path | None, *, fp8: bool, requests: int) -> dict[str, Any]:
    """Run everything that the module's docstring describes."""
    model, start = load_model(folder)
    executor = open_executor(model, fp8=fp8)
    if folder is None:
        train_stop_head(model, executor, start)
    result: dict[str, Any] = {
        "teacher_forced": compare_teacher_forced(executor, start),
        "free_running": compare_free_running(executor, start, requests),
    }
    if fp8:
        result["error_of_fp8"] = measure_fp8_error(open_executor(model, fp8=False), executor, start)
    return result


def is_within_bounds(result: dict[str, Any]) -> bool:
    """Return whether every bound is kept."""
    teacher_forced, free_running = result["teacher_forced"], result["free_running"]
    forced_is_within = (
        teacher_forced["largest_error"] <= TOLERANCE and not teacher_forced["stop_flips"]
    )
    return bool(
        forced_is_within and free_running["equal_counts"] >= EQUAL_SHARE * free_running["requests"]
    )


def main() -> None:
    """Measure, print and write. Exit with 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fp8", action="store_true", help="the flow model in FP8")
    parser.add_argument("--model", type=Path, help="a trained checkpoint")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="free-running requests")
    options = parser.parse_args()
    os.environ |= build_environment("cuda", 1)
    result = measure(options.model, fp8=options.fp8, requests=options.requests)
    for name, values in result.items():
        print(name, {key: value for key, value in values.items() if not isinstance(value, list)})
    about = {"environment": fingerprint(), "model": str(options.model or "random weights")}
    options.out.write_text(json.dumps(about | result, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(0 if is_within_bounds(result) else 1)


if __name__ == "__main__":
    main()
