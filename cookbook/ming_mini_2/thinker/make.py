"""Make shards of training or held-out data with all cores.

    python -m cookbook.ming_mini_2.thinker.make --model DIR --kind text --output DIR --shards 100

Speech needs `--clips`, a folder of `clip_folder`, and `--texts`, a file of `spoken_texts`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from cookbook.ming_mini.lexicon import Lexicon, read_lexicon
from cookbook.ming_mini.thinker.dialogs import Example
from cookbook.ming_mini.thinker.items import Item, Split
from cookbook.ming_mini.thinker.make import (
    Job,
    Workers,
    clip_arrays,
    join_media,
    make_all,
    new_parser,
    picture_arrays,
)
from cookbook.ming_mini.thinker.shards import Shard, of_examples, write_shard
from cookbook.ming_mini.thinker.speech_input import augment, change_speed
from cookbook.ming_mini.thinker.tasks import Kind
from cookbook.ming_mini_2.thinker.clip_folder import clips_from
from cookbook.ming_mini_2.thinker.clip_tasks import clip_items
from cookbook.ming_mini_2.thinker.dialog import DialogItem, example_of
from cookbook.ming_mini_2.thinker.dialogs import with_context
from cookbook.ming_mini_2.thinker.excluded import Excluded, read_excluded
from cookbook.ming_mini_2.thinker.film import Film
from cookbook.ming_mini_2.thinker.spoken_texts import SpokenText, read_texts
from cookbook.ming_mini_2.thinker.tasks import CURRICULUM, KINDS, earlier_item, groups, select
from sglang_omni.models.ming.media_rules import clip_tokens
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

GROUPS_A_SHARD: dict[Kind, int] = {"text": 10_000, "picture": 700, "speech": 200, "film": 60}
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Clips:
    """A folder of clips, and the texts whose answers are known."""

    folder: Path
    texts: dict[str, SpokenText]


@dataclass(frozen=True)
class ShardMaker:
    """The settings of a maker besides a seed. Without `clips` it makes no speech."""

    tokenizer: ThinkerTokenizer
    lexicon: Lexicon
    split: Split
    excluded: Excluded
    clips: Clips | None = None


@dataclass(frozen=True)
class Group:
    """Items about one medium, its arrays, and the tokens that it takes if it is a clip."""

    items: list[Item]
    medium: Arrays
    rows: int = 0


def make_shard(maker: ShardMaker, kind: Kind, seed: str, count: int) -> Shard:
    """Make a shard of at most `count` groups of items.

    It follows from the seed, and a shard of speech from the folder of clips too, which may hold
    fewer.

    Raises:
        ValueError: There is no clip to make speech of.
    """
    rng = Random(f"shard {kind} {seed}")
    examples: list[Example] = []
    media: list[Arrays] = []
    stream = _clip_groups(maker, seed, rng) if kind == "speech" else _groups(maker, kind, seed)
    for group in stream:
        number = len(media) if group.medium else -1
        examples += [_example(maker, item, group.rows, number, rng) for item in group.items]
        media.append(group.medium)
        if len(media) == count:
            break
    if not media:
        raise ValueError(f"there is nothing to make a shard of {kind} of")
    return of_examples(examples, CURRICULUM.tasks, **join_media(media))


def _example(maker: ShardMaker, item: Item, rows: int, number: int, rng: Random) -> Example:
    earlier = partial(earlier_item, rng, maker.lexicon, maker.split, maker.excluded)
    return example_of(maker.tokenizer, with_context(item, rng, earlier), rows, number)


def _groups(maker: ShardMaker, kind: Kind, seed: str) -> Iterator[Group]:
    for items in groups(kind, seed, maker.lexicon, maker.split, maker.excluded):
        first = items[0]
        if isinstance(first, DialogItem) and first.film:
            yield Group(items, film_arrays(first.film))
        elif first.scene:
            yield Group(items, picture_arrays(first.scene, CURRICULUM.marks))
        else:
            yield Group(items, {})


def film_arrays(film: Film) -> Arrays:
    """Return the arrays of a film."""
    frames = film.draw()
    size = np.array([frames.shape[:3]], np.int16)
    return {"shapes": size, "pixels": frames.ravel()}


def _clip_groups(maker: ShardMaker, seed: str, rng: Random) -> Iterator[Group]:
    if maker.clips is None:
        raise ValueError("speech needs a folder of clips and their texts")
    for clip in clips_from(maker.clips.folder, rng.randrange(2**30)):
        found = clip_items(clip.text, maker.clips.texts, rng)
        items = select(found, maker.split, maker.excluded)
        if items:
            samples = clip.at_16khz()
            if maker.split == "train":
                # Each clip is heard many times: of 130 times, its words are learnt by heart.
                samples = change_speed(samples, rng)
            samples = augment(samples, rng)
            yield Group(items, clip_arrays(clip.text, samples), clip_tokens(len(samples)))


_MAKER: list[ShardMaker] = []
"""Of a maker's process."""


def _open(model: Path, lexicon: Path, split: Split, clips: Path | None, texts: Path | None) -> None:
    torch.set_num_threads(1)
    spoken = Clips(clips, read_texts(texts)) if clips and texts else None
    tokenizer, words = ThinkerTokenizer(model), read_lexicon(lexicon)
    _MAKER.append(ShardMaker(tokenizer, words, split, read_excluded(), spoken))


def _work(job: Job) -> int:
    folder, kind, seed, count = job
    shard = make_shard(_MAKER[0], kind, seed, count)
    write_shard(folder, kind, seed, shard)
    return len(shard)


def main() -> None:
    """Make shards."""
    parser = new_parser(__doc__, KINDS)
    parser.add_argument("--clips", type=Path, help="folder of clips, for speech")
    parser.add_argument("--texts", type=Path, help="what the clips say, for speech")
    args = parser.parse_args()
    if args.kind == "speech" and not (args.clips and args.texts):
        parser.error("--kind speech needs --clips and --texts")
    opening: tuple[Any, ...] = (args.model, args.lexicon, args.split, args.clips, args.texts)
    make_all(args, GROUPS_A_SHARD[args.kind], Workers(_open, opening, _work))


if __name__ == "__main__":
    main()
