"""Make clips of held-out texts in the teachers' own voices, for `suite`.

    python -m cookbook.ming_mini_2.thinker.evaluation.clips --output DIR --count 100

Writes `DIR/texts.jsonl` and `DIR/chunk-*.npz`: so many questions and so many sentences to write
down, each said once. Needs what `voices/bundle_teachers.sh` lists.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini_2.thinker.clip_folder import SpokenClip, write_chunk
from cookbook.ming_mini_2.thinker.clip_tasks import clip_items
from cookbook.ming_mini_2.thinker.excluded import Excluded, read_excluded
from cookbook.ming_mini_2.thinker.spoken_texts import SpokenText, spoken_texts, write_texts
from cookbook.ming_mini_2.thinker.tasks import select
from cookbook.ming_mini_2.voices.jobs import draw_jobs, unchanged_jobs
from cookbook.ming_mini_2.voices.speakers import training_speakers
from cookbook.ming_mini_2.voices.synthesize import SpeechJob, make_clips

CHUNK_CLIPS = 40


def held_out_texts(seed: int, count: int, lexicon: Lexicon, excluded: Excluded) -> list[SpokenText]:
    """Draw `count` questions and `count` sentences whose items are all held out."""
    found: dict[bool, dict[str, SpokenText]] = {True: {}, False: {}}
    for one in spoken_texts(seed, lexicon, excluded):
        items = clip_items(one.text, {one.text: one}, Random(0))
        group = found[bool(one.answer)]
        if len(group) < count and len(select(items, "held_out", excluded)) == len(items):
            group[one.text] = one
        if all(len(texts) == count for texts in found.values()):
            break
    return [
        text
        for pair in zip(*(group.values() for group in found.values()), strict=True)
        for text in pair
    ]


def jobs_for(seed: int, texts: Sequence[SpokenText], lexicon: Lexicon) -> Iterator[SpeechJob]:
    """Yield a job for each text, said once in an unchanged voice of the training."""
    drawn = unchanged_jobs(draw_jobs(seed, lexicon, training_speakers()))
    for text, job in zip(texts, drawn, strict=False):
        yield replace(job, text=text.text, takes=job.takes[:1])


def say(job: SpeechJob) -> list[SpokenClip]:
    """Return the clips of a job as the teacher speaks them."""
    return [
        SpokenClip(one.samples, one.text, one.take.speaker.name)
        for one in make_clips(job, "natural")
    ]


def main() -> None:
    """Write the texts and the clips."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100, help="questions, and sentences")
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    lexicon = read_lexicon(args.lexicon)
    texts = held_out_texts(args.seed, args.count, lexicon, read_excluded())
    write_texts(args.output / "texts.jsonl", iter(texts), len(texts))
    jobs = list(jobs_for(args.seed, texts, lexicon))
    for number, first in enumerate(range(0, len(jobs), CHUNK_CLIPS)):
        said = (clip for job in jobs[first : first + CHUNK_CLIPS] for clip in say(job))
        write_chunk(args.output / f"chunk-{number:05d}.npz", list(said))
    print(f"wrote {len(texts)} clips to {args.output}")


if __name__ == "__main__":
    main()
