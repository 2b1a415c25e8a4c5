"""List the kernels of the thinker's decode step, from traces of SGLang's profiler.

    python -m benchmarks.thinker.decoding --fp8 --systems plug-in --profile DIR --out FILE
    python -m benchmarks.thinker.profile DIR/plug-in-16.trace.json.gz

The first command writes a trace of every system at every number of clients. The second prints the
kernels of a layer in their order, from one attention to the next, and those of a step boundary,
where a step ends and the next begins. Each kernel has the time from the end of the previous kernel
to its own end, so that gaps are counted.
"""

import argparse
import asyncio
import gzip
import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.thinker.load import Round, generate_all, random_prompts
from benchmarks.tools.kernel_times import KernelEvent, kernel_costs_us

STEPS = 16
# Long enough for the prefill of all prompts, and short enough that no answer has ended.
SETTLE_S, TOKENS = 0.5, 256
WRITE_TIMEOUT_S = 60.0
# No kind of layer has this many times a layer's kernels: such a sequence is a step boundary.
BOUNDARY_RATIO = 1.5
ATTENTION = ("attention", "attn", "fwd_grouped_kernel_stage1", "_fwd_kernel_stage1")


def write_trace(engine: Any, clients: int, prompt: int, vocabulary: int, path: Path) -> None:
    """Let `clients` requests decode, and write a trace of some of their steps.

    Raises:
        TimeoutError: SGLang writes no trace.
    """
    prompts = random_prompts(Round(clients, prompt, TOKENS), vocabulary)
    engine.loop.run_until_complete(_write_trace(engine, prompts, path))


async def _write_trace(engine: Any, prompts: list[list[int]], path: Path) -> None:
    from sglang.srt.managers.io_struct import ProfileReq

    folder = path.with_suffix("")
    generation = asyncio.ensure_future(generate_all(engine, prompts, TOKENS))
    await asyncio.sleep(SETTLE_S)
    request = ProfileReq(
        output_dir=str(folder),
        num_steps=STEPS,
        activities=["GPU"],
        with_stack=False,
        record_shapes=False,
        profile_id="decode",
    )
    await engine.tokenizer_manager.start_profile(request)
    await generation
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        while not (traces := list(folder.glob("*TP-0*.json.gz"))):
            await asyncio.sleep(0.2)
        # The file appears before all of it is written.
        while not _complete(traces[0]):
            await asyncio.sleep(0.2)
    traces[0].rename(path)
    shutil.rmtree(folder)


def _complete(path: Path) -> bool:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except EOFError:
        return False
    return True


def read_trace(path: Path) -> list[KernelEvent]:
    """Return the events of the GPU, in the order in which they ended."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    kernels = [
        KernelEvent(event["name"], event["ts"] + event["dur"])
        for event in events
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    return sorted(kernels, key=lambda kernel: kernel.end)


@dataclass(frozen=True)
class KernelSequence:
    """The kernels from one attention to the next, which occur `count` times in a trace.

    `us` is each kernel's mean time from the end of the previous kernel to its own end. `ends` has
    the end of the last kernel of each occurrence. Both are in microseconds.
    """

    names: tuple[str, ...]
    us: tuple[float, ...]
    ends: tuple[float, ...]

    @property
    def count(self) -> int:
        """Return how often the sequence occurs."""
        return len(self.ends)


def find_sequences(kernels: Sequence[KernelEvent]) -> list[KernelSequence]:
    """Return the kernel sequences between attentions, the most frequent (a layer) first.

    Longer ones hold the end of a step and the beginning of the next.

    Raises:
        ValueError: The trace has no layers.
    """
    attention_indices = [index for index, kernel in enumerate(kernels) if is_attention(kernel.name)]
    if len(attention_indices) < 2:
        raise ValueError("there are no layers in this trace")
    occurrences_by_names = defaultdict[tuple[str, ...], list[tuple[list[float], float]]](list)
    # The first kernel of a trace has no previous one, from whose end its time would count.
    for start, end in pairwise(index for index in attention_indices if index > 0):
        names = tuple(kernel.name for kernel in kernels[start:end])
        occurrences_by_names[names].append(
            (kernel_costs_us(kernels[start - 1 : end]), kernels[end - 1].end)
        )
    sequences = []
    for names, occurrences in occurrences_by_names.items():
        times, ends = zip(*occurrences, strict=True)
        means = tuple(sum(column) / len(times) for column in zip(*times, strict=True))
        sequences.append(KernelSequence(names, means, ends))
    return sorted(sequences, key=lambda sequence: -sequence.count)


@dataclass(frozen=True)
class StepProfile:
    """A decode step: its layer and, where the trace has one, its step boundary.

    `step_us` is the median of the microseconds from the end of one boundary to that of the next,
    where the trace has two.
    """

    step_us: float | None
    layer: KernelSequence
    boundary: KernelSequence | None


def profile_step(kernels: Sequence[KernelEvent]) -> StepProfile:
    """Profile a step of a trace.

    Raises:
        ValueError: The trace has no layers.
    """
    sequences = find_sequences(kernels)
    layer = sequences[0]
    boundaries = [
        sequence
        for sequence in sequences
        if len(sequence.names) >= BOUNDARY_RATIO * len(layer.names)
    ]
    if not boundaries:
        return StepProfile(None, layer, None)
    ends = sorted(end for sequence in boundaries for end in sequence.ends)
    step_times = [now - before for before, now in pairwise(ends)]
    return StepProfile(median(step_times) if step_times else None, layer, boundaries[0])


def is_attention(name: str) -> bool:
    """Return whether this is the first kernel of a layer's attention."""
    return any(part in name for part in ATTENTION) and "stage2" not in name


def print_sequence(title: str, sequence: KernelSequence) -> None:
    """Print the kernels of a sequence."""
    print(
        f"{title}: {sum(sequence.us):.1f} us in {len(sequence.us)} kernels, {sequence.count} times"
    )
    for name, microseconds in zip(sequence.names, sequence.us, strict=True):
        print(f"{microseconds:9.2f} us  {name[:120]}")


def to_json(profile: StepProfile) -> dict[str, Any]:
    """Convert a profile to JSON."""
    parts = {"layer": profile.layer, "seam": profile.boundary}
    sequences = {
        name: {"count": sequence.count, "names": sequence.names, "us": sequence.us}
        for name, sequence in parts.items()
        if sequence
    }
    return {"step_us": profile.step_us, **sequences}


def main() -> None:
    """Print the kernels of a step of each trace."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, help="also write the profiles of all traces as JSON")
    options = parser.parse_args()
    profiles = {path.name: profile_step(read_trace(path)) for path in options.traces}
    for name, profile in profiles.items():
        print(name, "" if profile.step_us is None else f"a step: {profile.step_us:.1f} us")
        print_sequence("layer", profile.layer)
        if profile.boundary:
            print_sequence("step boundary", profile.boundary)
    if options.out:
        about = {name: to_json(profile) for name, profile in profiles.items()}
        options.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
