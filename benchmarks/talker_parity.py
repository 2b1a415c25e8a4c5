"""Whether a stream depends on who else is in its batch, at the released shapes in bfloat16.

    python -m benchmarks.talker_parity --out result.json
    python -m benchmarks.talker_parity --fp8 --out result.json

Teacher-forced: the same request alone and among 63 others, each patch from the same state; the
largest relative latent error, and stop decisions that differ although neither is near 0.5. Free
running: 100 requests alone and in a batch of 64, each ended by its stop head, which is made to fire
after some tens of patches; how many have equal patch counts. With `--fp8` all of that with the flow
model in eight bits, and besides the error of each patch against bfloat16 from the same state.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from benchmarks.environment import fingerprint
from benchmarks.speech_shapes import TALKER, random_speech_model
from benchmarks.talker import admission
from sglang_omni.models.ming.talker import STOP_THRESHOLD
from sglang_omni.models.ming.voices import VoicePrompt
from sglang_omni.talker.executor import Admission
from sglang_omni.talker.fast.executor import GraphExecutor
from sglang_omni.talker.fast.state import SlotState
from sglang_omni.talker.model import SpeechModel

BATCH, FORCED_STEPS, TEXTS = 64, 40, 100
MOST_PATCHES, LEAST_PATCHES = 60, 3
NEAR = 0.02
TOLERANCE, EQUAL_COUNTS = 3e-2, 95


def enliven_stop_head(model: SpeechModel) -> None:
    """Give the stop head a random direction, so that it fires about once in 25 patches."""
    head = model.talker.stop_head
    generator = torch.Generator(head.weight.device).manual_seed(1)
    head.weight.normal_(0, head.in_features**-0.5, generator=generator)
    head.bias.copy_(torch.tensor([1.2, -1.2]))


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


def error_of_fp8(exact: GraphExecutor, eight: GraphExecutor, voice: VoicePrompt) -> dict[str, Any]:
    """Patches of a batch in eight bits against those in bfloat16, each from the same state."""
    slots = list(range(BATCH))
    for executor in (exact, eight):
        executor.prefill([admission(slot, voice) for slot in slots])
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


def teacher_forced(executor: GraphExecutor, voice: VoicePrompt) -> dict[str, Any]:
    """Slot 0 steps alone, slot 1 its twin among 63 others."""
    state, twin = executor.state, admission(0, voice)
    others = [admission(slot, voice) for slot in range(2, BATCH + 1)]
    executor.prefill([twin, Admission(1, *list(vars(twin).values())[1:]), *others])
    errors, flips = [], 0
    for _ in range(FORCED_STEPS):
        alone = one_step(executor, [0])[0]
        among = one_step(executor, list(range(1, BATCH + 1)))[0]
        entry = state.entry(state.patches[0] - 1)
        mine, theirs = state.ring[0, entry].float(), state.ring[1, entry].float()
        errors.append(((mine - theirs).abs().max() / mine.abs().max()).item())
        differ = (alone > STOP_THRESHOLD) != (among > STOP_THRESHOLD)
        flips += differ and min(abs(p - STOP_THRESHOLD) for p in (alone, among)) >= NEAR
        copy_slot(state, 0, 1)
    return {"largest_error": max(errors), "stop_flips": flips, "steps": FORCED_STEPS}


def patch_counts(executor: GraphExecutor, voice: VoicePrompt, seeds: list[int]) -> list[int]:
    """How many patches each request makes before its stop head fires, all in one batch."""
    prompt = admission(0, voice)
    starts = [
        Admission(slot, prompt.prompt, prompt.voice, seed, 0) for slot, seed in enumerate(seeds)
    ]
    executor.prefill(starts)
    counts, running = [0] * len(seeds), list(range(len(seeds)))
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


def free_running(executor: GraphExecutor, voice: VoicePrompt) -> dict[str, Any]:
    """The same requests alone and together."""
    seeds = list(range(TEXTS))
    alone = [patch_counts(executor, voice, [seed])[0] for seed in seeds]
    together = [
        *patch_counts(executor, voice, seeds[:BATCH]),
        *patch_counts(executor, voice, seeds[BATCH:]),
    ]
    equal = sum(a == b for a, b in zip(alone, together, strict=True))
    capped = sum(count == MOST_PATCHES for count in alone)
    return {"equal_counts": equal, "texts": TEXTS, "capped": capped, "counts": alone}


def main() -> None:
    """Measure, print, write; exit 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fp8", action="store_true", help="the flow model in eight bits")
    options = parser.parse_args()
    model = random_speech_model(TALKER, torch.device("cuda"), torch.bfloat16)
    enliven_stop_head(model)
    executor = open_executor(model, fp8=options.fp8)
    voice = model.voices["voice"]
    forced, free = teacher_forced(executor, voice), free_running(executor, voice)
    print(forced)
    print({name: value for name, value in free.items() if name != "counts"})
    result = {"environment": fingerprint(), "teacher_forced": forced, "free_running": free}
    if options.fp8:
        result["error_of_fp8"] = error_of_fp8(open_executor(model, fp8=False), executor, voice)
        print(result["error_of_fp8"])
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    fine = forced["largest_error"] <= TOLERANCE and not forced["stop_flips"]
    raise SystemExit(0 if fine and free["equal_counts"] >= EQUAL_COUNTS else 1)


if __name__ == "__main__":
    main()
