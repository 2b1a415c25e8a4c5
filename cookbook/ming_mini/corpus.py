"""A corpus on disk: chunks of clips that one process makes and another reads while it trains.

python -m cookbook.ming_mini.corpus --output DIR --hours 10 --seed 1 --lexicon FILE
"""

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.replicas import ALONE, Replicas
from cookbook.ming_mini.sentences import SPOKEN, Split, sentences
from cookbook.ming_mini.speakers import PRESETS, Speaker, training_speakers
from cookbook.ming_mini.synthesize import Clip, clips
from cookbook.ming_mini.vocoder import RATE

CHUNK_CLIPS = 400
PRESET_SHARE = 0.5
"""The share of clips that preset voices speak."""


@dataclass(frozen=True)
class Recordings:
    """Speech of some clips as people upload it, in a row: `samples` int16 [n].

    `locked` int16 [n] is the same with locked pulses. Recording i is between offsets[i] and
    offsets[i + 1], and says what clip `clips[i]` of its chunk says.
    """

    samples: np.ndarray
    locked: np.ndarray
    offsets: np.ndarray
    clips: np.ndarray


@dataclass(frozen=True)
class Chunk:
    """Clips in a row: `samples` int16 [n]; clip i is samples[offsets[i] : offsets[i + 1]].

    `instructions` has the rendered instruction of every clip, "" for none; it is empty where no
    clip has one. `recordings` are voice prompts besides the clips.
    """

    samples: np.ndarray
    offsets: np.ndarray
    speakers: np.ndarray
    texts: tuple[str, ...]
    instructions: tuple[str, ...] = ()
    recordings: Recordings | None = None

    def clip(self, index: int) -> np.ndarray:
        """Return the samples of one clip."""
        return self.samples[self.offsets[index] : self.offsets[index + 1]]

    def select_recorded(self, recordings: Recordings) -> "Chunk":
        """Return recordings of its clips as a chunk: their samples, speakers and texts."""
        texts = tuple(self.texts[index] for index in recordings.clips)
        speakers = self.speakers[recordings.clips]
        return Chunk(recordings.samples, recordings.offsets, speakers, texts)


def jobs(
    seed: int, lexicon: Lexicon, split: Split, speakers: Sequence[Speaker], preset_share: float
) -> Iterator[tuple[str, int, Speaker]]:
    """Yield (text, speaker's number, speaker) forever, half of them in a preset voice."""
    rng = Random(f"speakers {seed}")
    for text in sentences(seed, lexicon, split, SPOKEN):
        preset = rng.random() < preset_share
        number = rng.randrange(len(PRESETS) if preset else len(speakers))
        yield text, number, speakers[number]


def join(made: Sequence[Clip]) -> Chunk:
    """Join clips to one chunk."""
    lengths = [len(clip.samples) for clip in made]
    return Chunk(
        np.concatenate([clip.samples for clip in made]),
        np.concatenate(([0], np.cumsum(lengths))),
        np.array([clip.speaker for clip in made]),
        tuple(clip.text for clip in made),
    )


def write_chunks(folder: Path, made: Iterable[Clip], hours: float) -> float:
    """Write chunks until they hold this many hours. Returns the hours written."""
    folder.mkdir(parents=True, exist_ok=True)
    written, stream = 0.0, iter(made)
    for number in range(1_000_000):
        batch = list(islice(stream, CHUNK_CLIPS))
        if not batch or written >= hours:
            break
        chunk = join(batch)
        _write(folder / f"chunk-{number:05d}.npz", chunk)
        written += len(chunk.samples) / RATE / 3600
    return written


def _write(path: Path, chunk: Chunk) -> None:
    """Write a chunk and then rename it, so that a visible chunk is complete."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez(
            file,
            samples=chunk.samples,
            offsets=chunk.offsets,
            speakers=chunk.speakers,
            texts=np.array(chunk.texts),
        )
    partial.rename(path)


class CorpusFolder:
    """Read every chunk of a folder once, as they appear, or every chunk of a share of it."""

    def __init__(self, folder: Path, replicas: Replicas = ALONE) -> None:
        """Read this copy's share: of N copies, every N-th chunk."""
        self._folder, self._seen = folder, set[Path]()
        self._replicas = replicas

    def new_chunks(self, most: int = 4) -> Iterator[Chunk]:
        """Return new chunks, a few at a time."""
        paths = {path for path in self._folder.glob("chunk-*.npz") if self._is_ours(path)}
        for path in sorted(paths - self._seen)[:most]:
            self._seen.add(path)
            yield self.read_chunk(path)

    def _is_ours(self, path: Path) -> bool:
        number = int(path.stem.removeprefix("chunk-"))
        return number % self._replicas.count == self._replicas.rank

    def read_chunk(self, path: Path) -> Chunk:
        """Read one chunk."""
        with np.load(path) as data:
            texts = tuple(data["texts"].tolist())
            return Chunk(data["samples"], data["offsets"], data["speakers"], texts)

    def wait(self, deadline_seconds: float) -> Iterator[Chunk]:
        """Wait for the first chunks and return them. Raises `TimeoutError`."""
        end = time.monotonic() + deadline_seconds
        while time.monotonic() < end:
            if found := list(self.new_chunks()):
                return iter(found)
            time.sleep(0.5)
        raise TimeoutError(f"no chunk appeared in {self._folder}")


def main() -> None:
    """Make a corpus of training speech."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--preset-share", type=float, default=PRESET_SHARE)
    args = parser.parse_args()
    todo = jobs(
        args.seed, read_lexicon(args.lexicon), "train", training_speakers(), args.preset_share
    )
    start = time.monotonic()
    hours = write_chunks(args.output, clips(todo, args.processes), args.hours)
    print(f"wrote {hours:.2f} hours of speech in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
