"""Make shards of training or held-out data with all cores.

    python -m cookbook.ming_mini.thinker.make --model DIR --kind text --output DIR --shards 100

Any number of makers may run beside a training, which reads new shards as they appear.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from subprocess import SubprocessError
from typing import Any

import numpy as np
import torch

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.speakers import PRESETS, Speaker, training_speakers
from cookbook.ming_mini.synthesize import SynthesisError, synthesize_natural
from cookbook.ming_mini.thinker.dialogs import SYSTEMS, Example, answer_ids, prompt_ids
from cookbook.ming_mini.thinker.items import Item, Split
from cookbook.ming_mini.thinker.picture_labels import NAMES, mark_tokens
from cookbook.ming_mini.thinker.scenes import Scene
from cookbook.ming_mini.thinker.shards import Shard, of_examples, shard_path, write_shard
from cookbook.ming_mini.thinker.speech_input import (
    Synthesizer,
    at_16khz,
    augment,
    encode_log_mel,
    letter_numbers,
)
from cookbook.ming_mini.thinker.tasks import KINDS, Kind, groups
from sglang_omni.models.ming.media_rules import clip_tokens
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

GROUPS_A_SHARD: dict[Kind, int] = {"text": 10_000, "picture": 1000, "speech": 200}
EARLIER_SHARE, SYSTEM_SHARE = 0.2, 0.1
"""Of the dialogs, with earlier exchanges and with a system message."""
PRESET_SHARE = 0.4
"""Of the clips, spoken by the preset voices."""


Job = tuple[Path, Kind, str, int]
"""A shard to make: its folder, kind and seed, and the number of its groups."""


@dataclass(frozen=True)
class Workers:
    """What the processes of a maker run: `open` with `opening` once, then `work` for every job.

    `work` returns the number of examples that it made.
    """

    open: Callable[..., None]
    opening: tuple[Any, ...]
    work: Callable[[Job], int]


@dataclass(frozen=True)
class ShardMaker:
    """The settings of a maker besides a seed.

    `earlier` allows longer dialogs; `only` names tasks.
    """

    tokenizer: ThinkerTokenizer
    lexicon: Lexicon
    split: Split
    speakers: tuple[Speaker, ...] = ()
    speak: Synthesizer = synthesize_natural
    earlier: bool = True
    only: tuple[str, ...] = ()

    def wants(self, item: Item) -> bool:
        """Return whether the item's task is selected; without a selection, all are."""
        return not self.only or item.task in self.only


def make_shard(shop: ShardMaker, kind: Kind, seed: str, count: int) -> Shard:
    """Make a shard of `count` groups of items, which follows from the seed."""
    rng = Random(f"shard {kind} {seed}")
    stream = groups(kind, seed, shop.lexicon, shop.split)
    examples: list[Example] = []
    media: list[dict[str, np.ndarray]] = []
    while len(media) < count:
        items = [item for item in next(stream) if shop.wants(item)]
        if not items:
            continue
        made, rows = _medium(shop, items[0], rng)
        if made is None:
            continue
        number = len(media) if made else -1
        examples += [_example(shop, item, rows, number, rng) for item in items]
        media.append(made)
    return of_examples(examples, **join_media(media))


def _example(shop: ShardMaker, item: Item, rows: int, number: int, rng: Random) -> Example:
    earlier: list[Item] = []
    if shop.earlier and rng.random() < EARLIER_SHARE:
        item_groups = groups("text", rng.randrange(2**40), shop.lexicon, shop.split)
        earlier = [next(item_groups)[0] for _ in range(rng.randint(1, 2))]
    system = rng.choice(SYSTEMS) if shop.earlier and rng.random() < SYSTEM_SHARE else None
    prompt = prompt_ids(shop.tokenizer, item, rows, earlier, system)
    return Example(prompt + answer_ids(shop.tokenizer, item), len(prompt), item.task, number)


def _medium(shop: ShardMaker, item: Item, rng: Random) -> tuple[dict[str, np.ndarray] | None, int]:
    """Return arrays of the item's picture or clip, and the rows of a clip; None if speech fails."""
    if item.scene:
        return picture_arrays(item.scene), 0
    if item.speech is None:
        return {}, 0
    try:
        samples = augment(at_16khz(shop.speak(item.speech, _speaker(shop, rng))), rng)
    except (SynthesisError, SubprocessError):
        return None, 0
    return clip_arrays(item.speech, samples), clip_tokens(len(samples))


def picture_arrays(scene: Scene, names: Sequence[str] = NAMES) -> dict[str, np.ndarray]:
    """Return the arrays of a picture, which shows things of these `names`."""
    size = np.array([scene.size], np.int16)
    marks = mark_tokens(scene, names)
    return {"shapes": size, "pixels": scene.draw().ravel(), "marks": marks}


def clip_arrays(speech: str, samples: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of a clip: int16 `samples` at 16 kHz of some `speech`."""
    letters, mel = letter_numbers(speech), encode_log_mel(samples)
    sizes = {
        "frames": np.array([len(mel)], np.int32),
        "spelled": np.array([len(letters)], np.int32),
    }
    return {"mel": mel, "letters": letters, **sizes}


def _speaker(shop: ShardMaker, rng: Random) -> Speaker:
    presets = [one for one in shop.speakers if one in PRESETS]
    return rng.choice(presets if presets and rng.random() < PRESET_SHARE else shop.speakers)


def join_media(media: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join the arrays of the media of a shard by their names."""
    return {name: np.concatenate([one[name] for one in media]) for name in media[0]}


_MAKER: list[ShardMaker] = []
"""Of a maker's process."""


def _open(model: Path, lexicon: Path, split: Split, only: tuple[str, ...]) -> None:
    torch.set_num_threads(1)
    tokenizer, words = ThinkerTokenizer(model), read_lexicon(lexicon)
    # Selected tasks are for experiments, so they have the plainest form.
    _MAKER.append(
        ShardMaker(tokenizer, words, split, training_speakers(), earlier=not only, only=only)
    )


def _work(job: Job) -> int:
    folder, kind, seed, count = job
    shard = make_shard(_MAKER[0], kind, seed, count)
    write_shard(folder, kind, seed, shard)
    return len(shard)


def jobs(args: Any, groups_a_shard: int, end: float) -> Iterator[Job]:
    """Yield seeds of shards until there are enough or the time is over."""
    count = args.groups or groups_a_shard
    for number in range(args.shards):
        if time.monotonic() > end:
            return
        name = f"{args.split}-{args.seed}-{number:05d}"
        # An earlier run may have made it, because the seed determines the shard.
        if not shard_path(args.output, args.kind, name).exists():
            yield args.output, args.kind, name, count


def main() -> None:
    """Make shards."""
    args = new_parser(__doc__, KINDS).parse_args()
    opening = (args.model, args.lexicon, args.split, tuple(args.only))
    make_all(args, GROUPS_A_SHARD[args.kind], Workers(_open, opening, _work))


def new_parser(about: str | None, kinds: Sequence[Kind]) -> argparse.ArgumentParser:
    """Return the parser of the command line; `about` describes the program."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--model", type=Path, required=True, help="folder of the tokenizer")
    parser.add_argument("--kind", choices=kinds, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--split", choices=("train", "held_out"), default="train")
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--groups", type=int, help="texts, pictures or clips in a shard")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=(), help="tasks to make; all without")
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    return parser


def make_all(args: argparse.Namespace, groups_a_shard: int, workers: Workers) -> None:
    """Make the shards that the command line asks for, and print how many examples they have.

    Raises:
        BrokenProcessPool: A worker could not open what it needs, or was killed.
    """
    start, made = time.monotonic(), 0
    # It fails if a worker cannot open; `multiprocessing.Pool` would start new ones for ever.
    with ProcessPoolExecutor(
        args.processes, get_context("spawn"), workers.open, workers.opening
    ) as pool:
        # One job at a time, so that the time limit can end it.
        pending: list[Future[int]] = []
        for job in jobs(args, groups_a_shard, start + args.seconds):
            pending.append(pool.submit(workers.work, job))
            while len(pending) >= 2 * args.processes:
                made += pending.pop(0).result()
        made += sum(one.result() for one in pending)
    seconds = time.monotonic() - start
    print(f"{args.kind}: {made} examples in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
