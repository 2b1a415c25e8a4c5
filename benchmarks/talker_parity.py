"""Whether a stream depends on who else is in its batch, at the released shapes in bfloat16.

    python -m benchmarks.talker_parity --out result.json
    python -m benchmarks.talker_parity --fp8 --out result.json
    python -m benchmarks.talker_parity --model DIR --requests 400 --out result.json

Teacher-forced: 20 requests alone and among 63 others, each patch from the same state, until their
stop head fires; the largest relative latent error, and stop decisions that differ although neither
is near 0.5. Free running: 100 requests, or as many as asked, alone and in batches of 64, each ended
by its stop head, which is made to fire after some tens of patches; how many have equal patch
counts. With `--fp8` all of that with the flow model in eight bits, and besides the error of each
patch against bfloat16 from the same state.
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

from benchmarks.environment import fingerprint
from benchmarks.speech_shapes import TALKER, random_speech_model
from benchmarks.speech_texts import TEXTS
from benchmarks.talker import admission
from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.engines.speech.launch import environment
from sglang_omni.models.ming.speech.executor import Admission
from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor
from sglang_omni.models.ming.speech.fast.ops import LibraryOps
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.fast.step import FastStep
from sglang_omni.models.ming.speech.loading import SpeechModel, load_speech_model
from sglang_omni.models.ming.speech.prompt import SpeechPrompt
from sglang_omni.models.ming.speech.talker import STOP_THRESHOLD

BATCH, REQUESTS = 64, 100
FORCED_REQUESTS, FORCED_STEPS = 20, 40
MOST_PATCHES, LEAST_PATCHES = 60, 3
MIDDLE, SLOPE, RIDGE = 25, 0.5, 1e-2
NEAR = 0.02
TOLERANCE, EQUAL_SHARE = 3e-2, 0.95


Start = Callable[[int, int], Admission]
"""Makes what slot s begins with for request number n."""


def random_start(model: SpeechModel) -> Start:
    """The same prompt every time; the number is its seed."""
    (voice,) = model.voices.values()
    return lambda slot, number: replace(admission(slot, voice), seed=number)


def sentence_start(model: SpeechModel) -> Start:
    """Sentences in turn, each in the first voice and with the number as its seed."""
    voice = next(iter(model.voices.values()))
    english = [text for text in TEXTS if text.isascii()]

    def start(slot: int, number: int) -> Admission:
        text = SpeechPrompt(
            english[number % len(english)],
            prompt_text=voice.text,
            prompt_patches=len(voice.embeds),
            speakers=0 if voice.speaker is None else 1,
        )
        return Admission(slot, model.tokenizer.assemble(text), voice, number, 0)

    return start


@torch.inference_mode()
def enliven_stop_head(model: SpeechModel, executor: GraphExecutor, start: Start) -> None:
    """Have the stop head fire after some tens of patches, as one that was trained would.

    Random states tell little of how far a text has been read, but something: the head becomes their
    best linear guess at it (ridge regression over a batch of streams), as a logit that grows by
    `SLOPE` a patch and is even at patch `MIDDLE`.
    """
    # On the host: the talker's process leaves cuBLAS no memory for what its steps do not do.
    states = free_states(model, executor, start).cpu()
    rows, mean = states.flatten(0, 1), states.mean(dim=(0, 1))
    patch = torch.arange(MOST_PATCHES).repeat_interleave(BATCH).float()
    rows, patch = rows - mean, patch - patch.mean()
    gram = rows.T @ rows
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    guess = torch.linalg.solve(gram, rows.T @ patch)
    guess *= SLOPE * patch.square().sum() / ((rows @ guess) @ patch)
    offset = SLOPE * ((MOST_PATCHES - 1) / 2 - MIDDLE) - mean @ guess
    head = model.talker.stop_head
    head.weight.copy_(torch.stack((-guess / 2, guess / 2)))
    head.bias.copy_(torch.stack((-offset / 2, offset / 2)))


def free_states(model: SpeechModel, executor: GraphExecutor, start: Start) -> Tensor:
    """States of the backbone that the stop head sees, of a batch of streams: [patch, row, D]."""
    slots, index = list(range(BATCH)), torch.arange(BATCH, device="cuda")
    step = FastStep(model.talker, executor.state)
    executor.prefill([start(slot, slot) for slot in slots])
    states = []
    for _ in range(MOST_PATCHES):
        states.append(step.run_backbone(index, LibraryOps())[0].float())
        torch.cuda.synchronize()
        one_step(executor, slots)
    return torch.stack(states)


def open_executor(model: SpeechModel, *, fp8: bool) -> GraphExecutor:
    """Slots for a batch and one request alone."""
    return GraphExecutor(model, BATCH + 1, 512, 256, fp8=fp8)


def one_step(executor: GraphExecutor, slots: list[int]) -> list[float]:
    """Step these slots and wait for everything."""
    executor.begin(slots)
    stops = executor.stops()
    executor.finish([False] * len(slots))
    executor.collect()
    return stops


def copy_slot(state: SlotState, source: int, target: int) -> None:
    """Make one slot the other's twin."""
    for rows in (state.ring, state.next_embed, state.lengths, state.patches):
        rows[target] = rows[source]
    for cache in (state.keys, state.values):
        cache[:, target] = cache[:, source]


def copy_state(source: SlotState, target: SlotState) -> None:
    """Make all slots those of another state."""
    for name in ("ring", "next_embed", "lengths", "patches", "keys", "values"):
        getattr(target, name).copy_(getattr(source, name))


def error_of_fp8(exact: GraphExecutor, eight: GraphExecutor, start: Start) -> dict[str, Any]:
    """Patches of a batch in eight bits against those in bfloat16, each from the same state."""
    slots = list(range(BATCH))
    for executor in (exact, eight):
        executor.prefill([start(slot, slot) for slot in slots])
    largest, squares, powers = [], 0.0, 0.0
    for _ in range(FORCED_STEPS):
        copy_state(exact.state, eight.state)
        one_step(exact, slots)
        one_step(eight, slots)
        entry = exact.state.entry(exact.state.patches[:BATCH] - 1)
        theirs, ours = (one.state.ring[slots, entry].float() for one in (exact, eight))
        largest.append(((theirs - ours).abs().max() / theirs.abs().max()).item())
        squares += (theirs - ours).square().mean().item()
        powers += theirs.square().mean().item()
    return {"largest": max(largest), "rms": (squares / powers) ** 0.5, "steps": FORCED_STEPS}


def teacher_forced(executor: GraphExecutor, start: Start) -> dict[str, Any]:
    """Some requests, each alone and among 63 others, until its stop head fires."""
    errors, flips = [], 0
    for number in range(FORCED_REQUESTS):
        for error, alone, among in twin_steps(executor, start, number):
            errors.append(error)
            differ = (alone > STOP_THRESHOLD) != (among > STOP_THRESHOLD)
            flips += differ and min(abs(p - STOP_THRESHOLD) for p in (alone, among)) >= NEAR
    return {
        "largest_error": max(errors),
        "median_error": median(errors),
        "stop_flips": flips,
        "steps": len(errors),
    }


def twin_steps(
    executor: GraphExecutor, start: Start, number: int
) -> Iterator[tuple[float, float, float]]:
    """Slot 0 steps alone, slot 1 its twin among 63 others, which begins each step as it does: the
    relative error of the patch, and both stop probabilities."""
    state = executor.state
    others = [start(slot, FORCED_REQUESTS + slot) for slot in range(2, BATCH + 1)]
    executor.prefill([start(0, number), start(1, number), *others])
    for count in range(1, FORCED_STEPS + 1):
        alone = one_step(executor, [0])[0]
        among = one_step(executor, list(range(1, BATCH + 1)))[0]
        entry = state.entry(state.patches[0] - 1)
        mine, theirs = state.ring[0, entry].float(), state.ring[1, entry].float()
        yield ((mine - theirs).abs().max() / mine.abs().max()).item(), alone, among
        if count > LEAST_PATCHES + 1 and alone > STOP_THRESHOLD:
            return
        copy_slot(state, 0, 1)


def patch_counts(executor: GraphExecutor, numbers: list[int], start: Start) -> list[int]:
    """How many patches each request makes before its stop head fires, all in one batch."""
    executor.prefill([start(slot, number) for slot, number in enumerate(numbers)])
    counts, running = [0] * len(numbers), list(range(len(numbers)))
    while running:
        stops = one_step(executor, running)
        ended = set()
        for slot, stop in zip(running, stops, strict=True):
            counts[slot] += 1
            fired = counts[slot] > LEAST_PATCHES + 1 and stop > STOP_THRESHOLD
            if fired or counts[slot] == MOST_PATCHES:
                ended.add(slot)
        running = [slot for slot in running if slot not in ended]
    return counts


def free_running(executor: GraphExecutor, start: Start, requests: int) -> dict[str, Any]:
    """So many requests alone and together."""
    numbers = list(range(requests))
    alone = [patch_counts(executor, [number], start)[0] for number in numbers]
    together = [
        count
        for first in range(0, requests, BATCH)
        for count in patch_counts(executor, numbers[first : first + BATCH], start)
    ]
    equal = sum(a == b for a, b in zip(alone, together, strict=True))
    capped = sum(count == MOST_PATCHES for count in alone)
    return {
        "equal_counts": equal,
        "requests": requests,
        "capped": capped,
        "different_counts": len(set(alone)),
        "counts": alone,
        "counts_together": together,
    }


def load(folder: Path | None) -> tuple[SpeechModel, Start]:
    """The model, and what its requests begin with."""
    if folder is None:
        model = random_speech_model(TALKER, torch.device("cuda"), torch.bfloat16)
        return model, random_start(model)
    settings = TalkerSettings(folder, device="cuda", dtype="bfloat16")
    model = load_speech_model(settings)
    return model, sentence_start(model)


def measure(folder: Path | None, *, fp8: bool, requests: int) -> dict[str, Any]:
    """All that the module's head describes."""
    model, start = load(folder)
    executor = open_executor(model, fp8=fp8)
    if folder is None:
        enliven_stop_head(model, executor, start)
    result: dict[str, Any] = {
        "teacher_forced": teacher_forced(executor, start),
        "free_running": free_running(executor, start, requests),
    }
    if fp8:
        result["error_of_fp8"] = error_of_fp8(open_executor(model, fp8=False), executor, start)
    return result


def is_fine(result: dict[str, Any]) -> bool:
    """Whether every bound is kept."""
    forced, free = result["teacher_forced"], result["free_running"]
    steady = forced["largest_error"] <= TOLERANCE and not forced["stop_flips"]
    return bool(steady and free["equal_counts"] >= EQUAL_SHARE * free["requests"])


def main() -> None:
    """Measure, print, write; exit 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fp8", action="store_true", help="the flow model in eight bits")
    parser.add_argument("--model", type=Path, help="a trained checkpoint")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="free-running requests")
    options = parser.parse_args()
    os.environ |= environment("cuda", 1)
    result = measure(options.model, fp8=options.fp8, requests=options.requests)
    for name, found in result.items():
        print(name, {key: value for key, value in found.items() if not isinstance(value, list)})
    about = {"environment": fingerprint(), "model": str(options.model or "random weights")}
    options.out.write_text(json.dumps(about | result, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(0 if is_fine(result) else 1)


if __name__ == "__main__":
    main()
