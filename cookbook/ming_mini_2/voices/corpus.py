"""A corpus on disk: `chunk-*.npz`, made by many processes and read by both halves' trainings.

    python -m cookbook.ming_mini_2.voices.corpus --output DIR --hours 10 --seed 1 --lexicon FILE

A chunk has the arrays `audio` (int16 [n], 44.1 kHz, all clips in a row), `ends` (int64 [clips],
where each clip ends in `audio`), and `texts`, `voices`, `manners` (uint8, the bytes of a JSON list
with one entry a clip). A manner is {} or has the features that it asks for and the `instruction`
as the product renders it. What some clips say is there as people upload it, too: `recordings`
(int16 [m], in a row), `locked` (the same with locked pulses), `recording_ends` and `recorded`
(int64, where each ends, and of which clip it is). Another call with the same folder goes on with
other texts.
"""

import argparse
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from cookbook.ming_mini.corpus import Chunk, CorpusFolder, Recordings
from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.replicas import ALONE, Replicas
from cookbook.ming_mini.synthesize import SynthesisError
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.thinker.spoken_texts import read_texts
from cookbook.ming_mini_2.voices.jobs import draw_jobs, unchanged_jobs
from cookbook.ming_mini_2.voices.manner import manner_to_json
from cookbook.ming_mini_2.voices.speakers import training_speakers
from cookbook.ming_mini_2.voices.steady import make_steady_clips, steady_jobs
from cookbook.ming_mini_2.voices.synthesize import Form, SpeechJob, VoiceClip, make_clips
from cookbook.ming_mini_2.voices.vocabulary import read_vocabulary

CHUNK_CLIPS = 400
Steady = Literal["steady"]
"""The form of clips in the first recipe's voices; all others are of the teachers' speech."""
Make = Callable[[SpeechJob], list[VoiceClip]]
SEED_STEP = 100_003
"""Calls that go on have seeds so far apart."""


def record_chunk(clips: Sequence[VoiceClip]) -> dict[str, np.ndarray]:
    """Return the arrays of a chunk."""
    recorded = [(index, clip.recording) for index, clip in enumerate(clips) if clip.recording]
    return {
        "audio": np.concatenate([clip.samples for clip in clips]),
        "ends": np.cumsum([len(clip.samples) for clip in clips], dtype=np.int64),
        "texts": _to_bytes([clip.text for clip in clips]),
        "voices": _to_bytes([clip.take.speaker.name for clip in clips]),
        "manners": _to_bytes([_manner_entry(clip) for clip in clips]),
        "recordings": _in_a_row([one.samples for _, one in recorded]),
        "locked": _in_a_row([one.locked for _, one in recorded]),
        "recording_ends": np.cumsum([len(one.samples) for _, one in recorded], dtype=np.int64),
        "recorded": np.array([index for index, _ in recorded], dtype=np.int64),
    }


def _in_a_row(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int16), *parts])


def _manner_entry(clip: VoiceClip) -> dict[str, str]:
    take = clip.take
    if take.manner.is_neutral:
        return {}
    return manner_to_json(take.manner) | {"instruction": take.instruction}


def _to_bytes(values: Sequence[Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(values, ensure_ascii=False).encode(), dtype=np.uint8)


def _from_bytes(data: np.ndarray) -> list[Any]:
    return list(json.loads(data.tobytes()))


def write_chunk(path: Path, clips: Sequence[VoiceClip]) -> float:
    """Write a chunk, complete as soon as it is visible. Returns its hours."""
    arrays = record_chunk(clips)
    partial_path = path.with_suffix(".partial")
    with partial_path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    partial_path.rename(path)
    return len(arrays["audio"]) / RATE / 3600


class VoiceCorpusFolder(CorpusFolder):
    """Read every chunk of a folder once, as they appear; speakers are numbered as they are met."""

    def __init__(self, folder: Path, replicas: Replicas = ALONE) -> None:
        super().__init__(folder, replicas)
        self._numbers: dict[str, int] = {}

    def read_chunk(self, path: Path) -> Chunk:
        """Read one chunk."""
        with np.load(path) as data:
            voices = [
                self._numbers.setdefault(name, len(self._numbers))
                for name in _from_bytes(data["voices"])
            ]
            return Chunk(
                data["audio"],
                np.concatenate(([0], data["ends"])),
                np.array(voices),
                tuple(_from_bytes(data["texts"])),
                tuple(one.get("instruction", "") for one in _from_bytes(data["manners"])),
                Recordings(
                    data["recordings"],
                    data["locked"],
                    np.concatenate(([0], data["recording_ends"])),
                    data["recorded"],
                ),
            )


def make_all(jobs: Iterable[SpeechJob], make: Make, processes: int) -> Iterator[VoiceClip]:
    """Yield the clips of jobs as they are done. Jobs that a teacher fails at are left out."""
    work = partial(_make, make=make)
    with get_context("fork").Pool(processes) as pool:
        for clips in pool.imap_unordered(work, jobs, chunksize=2):
            yield from clips


def _make(job: SpeechJob, make: Make) -> list[VoiceClip]:
    try:
        return make(job)
    except (SynthesisError, subprocess.SubprocessError):
        return []


def write_corpus(
    folder: Path, clips: Iterable[VoiceClip], hours: float, seconds: float, chunk_clips: int
) -> tuple[float, int]:
    """Write chunks until they hold so many hours or the time is over.

    Returns the hours and the number of chunks written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first, written, count, end = _next_number(folder), 0.0, 0, time.monotonic() + seconds
    stream = iter(clips)
    while written < hours:
        group = list(islice(_until(stream, end), chunk_clips))
        if group:
            written += write_chunk(folder / f"chunk-{first + count:05d}.npz", group)
            count += 1
        if len(group) < chunk_clips:
            break
    return written, count


def _until(clips: Iterator[VoiceClip], end: float) -> Iterator[VoiceClip]:
    while time.monotonic() < end:
        if (clip := next(clips, None)) is None:
            return
        yield clip


def _next_number(folder: Path) -> int:
    numbers = [int(path.stem.removeprefix("chunk-")) for path in folder.glob("chunk-*.npz")]
    return max(numbers, default=-1) + 1


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=math.inf, help="seconds of this call")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--vocabulary", type=Path, help="file of frequent words, not `wordfreq`'s")
    parser.add_argument("--texts", type=Path, help="file of `spoken_texts`, to be said as well")
    parser.add_argument("--form", choices=(*get_args(Form), *get_args(Steady)), default="free")
    parser.add_argument("--chunk-clips", type=int, default=CHUNK_CLIPS)
    return parser.parse_args()


def _work_of(
    form: Form | Steady, seed: int, lexicon: Lexicon, given: Sequence[str], vocabulary: Path | None
) -> tuple[Iterator[SpeechJob], Make]:
    """Return the jobs of a form, and what makes their clips."""
    if form == "steady":
        return steady_jobs(seed, lexicon, given=given), make_steady_clips
    frequent = read_vocabulary(vocabulary)
    jobs = draw_jobs(seed, lexicon, training_speakers(), given=given, frequent=frequent)
    return unchanged_jobs(jobs) if form == "natural" else jobs, partial(make_clips, form=form)


def main() -> None:
    """Make a corpus of training speech, or more of one."""
    args = parse_arguments()
    # Whoever stops this process by SIGTERM means its workers, too: leaving the pool ends them.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    args.output.mkdir(parents=True, exist_ok=True)
    seed = args.seed + SEED_STEP * _next_number(args.output)
    given = tuple(read_texts(args.texts)) if args.texts else ()
    jobs, make = _work_of(args.form, seed, read_lexicon(args.lexicon), given, args.vocabulary)
    clips = make_all(jobs, make, args.processes)
    start = time.monotonic()
    hours, chunks = write_corpus(args.output, clips, args.hours, args.seconds, args.chunk_clips)
    spent = time.monotonic() - start
    print(f"wrote {hours:.2f} hours in {chunks} chunks in {spent:.0f} s", flush=True)


if __name__ == "__main__":
    main()
