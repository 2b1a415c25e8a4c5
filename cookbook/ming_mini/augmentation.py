"""Changed copies of a corpus, so that a talker cannot learn it by heart.

A talker sees some tens of hours a hundred times, and what it gains is the exact latents of each
clip. A copy has other latents and the same words: its clips begin a little later, so that latents
cover other stretches; they are faster and higher, or slower and lower, as by another speaker; some
are said after another by the same speaker. Clips with locked pulses keep them in their places.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from torchaudio.functional import resample

from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.vocoder import RATE

SPEAKER_STRIDE = 100_000
"""Between the numbers of one speaker at different speeds, who are different speakers."""
JOINED_SHARE, MAX_PAUSE_S, MAX_JOINED_S = 0.4, 0.25, 14.0
"""The share of clips that another is said after, the silence between them, and both together."""


@dataclass(frozen=True)
class Changes:
    """How the copies of a clip differ.

    `speeds` are those of the copies in turn, in percent; the pitch and the formants rise with it.
    Before a clip there is silence of less than `max_delay_s` seconds. All silences are multiples
    of `grid` samples.
    """

    speeds: tuple[int, ...]
    max_delay_s: float
    grid: int


FREE = Changes((100, 92, 108, 100, 96, 104), max_delay_s=0.08, grid=1)
"""A delay is within a latent of the talker's VAE."""


def locked(latent: int) -> Changes:
    """Return the changes that leave pulses in their places within latents of `latent` samples.

    A clip begins one latent later or at once. With longer silences the talker would learn to begin
    late.
    """
    return Changes((100,), max_delay_s=2 * latent / RATE, grid=latent)


def change_chunk(
    chunk: Chunk, speed: int, changes: Changes, rng: Random, device: torch.device
) -> Chunk:
    """Return a copy of a chunk with other latents, at `speed` percent; it is made on the device.

    It has no recordings: those of the chunk are of the same speakers.
    """
    # Played at this speed, a second has as many samples as before.
    played = resample(torch.from_numpy(chunk.samples).to(device).float(), speed, 100)
    samples = played.round().clamp(-32767, 32767).short().cpu().numpy()
    offsets = chunk.offsets * 100 // speed
    instructions = chunk.instructions or ("",) * len(chunk.texts)
    pieces, lengths, groups = [], [], list(_group(chunk, speed, rng))
    for group in groups:
        parts = [_silence(changes.max_delay_s, changes.grid, rng)]
        for place, index in enumerate(group):
            parts += [_silence(MAX_PAUSE_S, changes.grid, rng)] if place else []
            parts.append(samples[offsets[index] : offsets[index + 1]])
        pieces += parts
        lengths.append(sum(len(part) for part in parts))
    first = [group[0] for group in groups]
    return Chunk(
        np.concatenate(pieces),
        np.concatenate(([0], np.cumsum(lengths))),
        chunk.speakers[first] + SPEAKER_STRIDE * changes.speeds.index(speed),
        tuple(" ".join(chunk.texts[index] for index in group) for group in groups),
        tuple(instructions[index] for index in first),
    )


def _silence(max_s: float, grid: int, rng: Random) -> np.ndarray:
    return np.zeros(rng.randrange(0, round(max_s * RATE), grid), dtype=np.int16)


def _group(chunk: Chunk, speed: int, rng: Random) -> Iterator[Sequence[int]]:
    """Yield every clip once: alone, or before another one of its speaker."""
    seconds = np.diff(chunk.offsets) / RATE * 100 / speed
    waiting: dict[int, int] = {}
    order = list(range(len(chunk.texts)))
    rng.shuffle(order)
    for index in order:
        if chunk.instructions and chunk.instructions[index]:
            yield (index,)
            continue
        speaker = int(chunk.speakers[index])
        other = waiting.pop(speaker, None)
        if other is not None and seconds[other] + seconds[index] + MAX_PAUSE_S <= MAX_JOINED_S:
            yield (other, index)
        elif other is not None:
            yield from ((other,), (index,))
        elif rng.random() < JOINED_SHARE:
            waiting[speaker] = index
        else:
            yield (index,)
    yield from ((index,) for index in waiting.values())


class Copies:
    """Gives every chunk of a corpus `count` times: as it is, and later changed.

    Until its last copy is made, a chunk stays in memory: 320 MB an hour.
    """

    def __init__(self, count: int, changes: Changes, seed: int, device: torch.device) -> None:
        self._count, self._changes, self._device = count, changes, device
        self._rng = Random(f"copies {seed}")
        self._due = deque[tuple[Chunk, int]]()

    def originals(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield new chunks as they are."""
        for chunk in chunks:
            yield chunk
            if self._count > 1:
                self._due.append((chunk, 1))

    def changed(self, seconds: float) -> Iterator[Chunk]:
        """Yield copies that are due, for about `seconds`."""
        end = time.monotonic() + seconds
        while self._due and time.monotonic() < end:
            chunk, number = self._due.popleft()
            speeds = self._changes.speeds
            speed = speeds[(number - 1) % len(speeds)]
            yield change_chunk(chunk, speed, self._changes, self._rng, self._device)
            if number + 1 < self._count:
                self._due.append((chunk, number + 1))
