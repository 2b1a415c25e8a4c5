"""Which kernels a decode step of the thinker is made of: read from traces of SGLang's profiler.

    python -m benchmarks.thinker.decoding --fp8 --systems plug-in --profile DIR --out FILE
    python -m benchmarks.thinker.profile DIR/plug-in-16.trace.json.gz

The first command leaves a trace of every system at every number of clients; the second prints the
kernels of a layer in their order, from one attention to the next, and those of a seam, where a step
ends and the next begins. Each has the time from the end of the kernel in front to its own, so that
nothing between them is lost.
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

from benchmarks.thinker.load import Round, prompts_of, together
from benchmarks.tools.kernel_times import Ran, spent

STEPS = 16
# Long enough for all prompts to be read, and short enough that nobody has ended by then.
SETTLED_S, TOKENS = 0.5, 256
WRITTEN_S = 60.0
# So many times a layer's kernels are more than those of any other kind of layer: a seam.
SEAM = 1.5
ATTENTION = ("attention", "attn", "fwd_grouped_kernel_stage1", "_fwd_kernel_stage1")


def trace(engine: Any, clients: int, prompt: int, vocabulary: int, path: Path) -> None:
    """Have so many clients decode, and write a trace of some of their steps.

    Raises `TimeoutError` if SGLang writes none.
    """
    prompts = prompts_of(Round(clients, prompt, TOKENS), vocabulary)
    engine.loop.run_until_complete(_trace(engine, prompts, path))


async def _trace(engine: Any, prompts: list[list[int]], path: Path) -> None:
    from sglang.srt.managers.io_struct import ProfileReq

    folder = path.with_suffix("")
    answers = asyncio.ensure_future(together(engine, prompts, TOKENS))
    await asyncio.sleep(SETTLED_S)
    request = ProfileReq(
        output_dir=str(folder),
        num_steps=STEPS,
        activities=["GPU"],
        with_stack=False,
        record_shapes=False,
        profile_id="decode",
    )
    await engine.tokenizer_manager.start_profile(request)
    await answers
    async with asyncio.timeout(WRITTEN_S):
        while not (found := list(folder.glob("*TP-0*.json.gz"))):
            await asyncio.sleep(0.2)
        # It is written in one go, but not at once.
        while not _complete(found[0]):
            await asyncio.sleep(0.2)
    found[0].rename(path)
    shutil.rmtree(folder)


def _complete(path: Path) -> bool:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except EOFError:
        return False
    return True


def read_trace(path: Path) -> list[Ran]:
    """What ran on the device, in the order in which it ended."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    ran = [
        Ran(event["name"], event["ts"] + event["dur"])
        for event in events
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    return sorted(ran, key=lambda one: one.end)


@dataclass(frozen=True)
class Stretch:
    """Kernels from one attention to the next, `count` times in a trace.

    `us` is the mean time from the end of the kernel in front to its own, of each; `ends` is when
    the last kernel of each such stretch ended, in microseconds too.
    """

    names: tuple[str, ...]
    us: tuple[float, ...]
    ends: tuple[float, ...]

    @property
    def count(self) -> int:
        """How often it was met."""
        return len(self.ends)


def stretches(ran: Sequence[Ran]) -> list[Stretch]:
    """What lies between attentions, the most frequent first: that is a layer. Longer ones hold the
    end of a step and the beginning of the next. Raises `ValueError` where there is no attention."""
    places = [index for index, one in enumerate(ran) if is_attention(one.name)]
    if len(places) < 2:
        raise ValueError("there are no layers in this trace")
    found = defaultdict[tuple[str, ...], list[tuple[list[float], float]]](list)
    # What comes first in a trace has nothing in front of it, from whose end it would be counted.
    for start, end in pairwise(place for place in places if place > 0):
        names = tuple(one.name for one in ran[start:end])
        found[names].append((spent(ran[start - 1 : end]), ran[end - 1].end))
    kinds = []
    for names, met in found.items():
        times, ends = zip(*met, strict=True)
        means = tuple(sum(one) / len(times) for one in zip(*times, strict=True))
        kinds.append(Stretch(names, means, ends))
    return sorted(kinds, key=lambda kind: -kind.count)


@dataclass(frozen=True)
class Profile:
    """A decode step: its layer, and its seam, where a trace has one; `step_us` is the median of the
    microseconds from one seam's end to the next one's, where it has two."""

    step_us: float | None
    layer: Stretch
    seam: Stretch | None


def profile(ran: Sequence[Ran]) -> Profile:
    """What a trace says of a step. Raises `ValueError` where there is no attention."""
    kinds = stretches(ran)
    layer = kinds[0]
    seams = [kind for kind in kinds if len(kind.names) >= SEAM * len(layer.names)]
    if not seams:
        return Profile(None, layer, None)
    ends = sorted(end for kind in seams for end in kind.ends)
    apart = [now - before for before, now in pairwise(ends)]
    return Profile(median(apart) if apart else None, layer, seams[0])


def is_attention(name: str) -> bool:
    """Whether it is the first kernel of a layer's attention."""
    return any(part in name for part in ATTENTION) and "stage2" not in name


def show(what: str, kind: Stretch) -> None:
    """Print the kernels of a stretch."""
    print(f"{what}: {sum(kind.us):.1f} us in {len(kind.us)} kernels, {kind.count} times")
    for name, took in zip(kind.names, kind.us, strict=True):
        print(f"{took:9.2f} us  {name[:120]}")


def written(found: Profile) -> dict[str, Any]:
    """As JSON holds it."""
    parts = {"layer": found.layer, "seam": found.seam}
    kinds = {
        name: {"count": kind.count, "names": kind.names, "us": kind.us}
        for name, kind in parts.items()
        if kind
    }
    return {"step_us": found.step_us, **kinds}


def main() -> None:
    """Print what a step of each trace is made of."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, help="the same of all traces as JSON")
    options = parser.parse_args()
    profiles = {path.name: profile(read_trace(path)) for path in options.traces}
    for name, found in profiles.items():
        print(name, "" if found.step_us is None else f"a step: {found.step_us:.1f} us")
        show("layer", found.layer)
        if found.seam:
            show("seam", found.seam)
    if options.out:
        about = {name: written(found) for name, found in profiles.items()}
        options.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
