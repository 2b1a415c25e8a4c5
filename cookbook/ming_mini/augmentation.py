"""Changed copies of a corpus, so that a talker cannot learn it by heart.

A talker sees some tens of hours a hundred times, and what it gains is the exact latents of each
clip. A copy has other latents and the same words: its clips begin a little later, so that latents
cover other stretches; they are faster and higher, or slower and lower, as by another speaker; some
are said after another by the same speaker.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from random import Random

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.vocoder import RATE

SPEEDS = (1.0, 0.92, 1.08, 1.0, 0.96, 1.04)
"""Of a clip's copies in turn; the pitch and the formants rise with it."""
SPEAKERS_APART = 100_000
"""Between the numbers of one speaker at different speeds, who are different speakers."""
LATEST = 0.08
"""Seconds of silence before a clip at most: a latent of the talker's VAE."""
JOINED, PAUSE, LONGEST = 0.4, 0.25, 14.0
"""The share of clips that another is said after, and seconds: of silence between them at most, and
of both together."""
TAPS = 16


def resample(samples: Tensor, speed: float) -> Tensor:
    """Return float samples [n] played `speed` times as fast: [n / speed]."""
    positions = torch.arange(int(len(samples) / speed), device=samples.device, dtype=torch.float64)
    positions = positions * speed
    whole = positions.floor()
    part = (positions - whole).float()
    padded = torch.nn.functional.pad(samples, (TAPS // 2, TAPS // 2))
    # Where it is played faster, what would be above half the rate is cut.
    band = min(1.0, 1 / speed)
    made = torch.zeros_like(part)
    for tap in range(1 - TAPS // 2, 1 + TAPS // 2):
        distance = tap - part
        window = torch.cos(torch.pi * distance / TAPS).square()
        weight = band * torch.sinc(band * distance) * window
        made += weight * padded[whole.long() + (tap + TAPS // 2)]
    return made


def change_chunk(chunk: Chunk, speed: float, rng: Random, device: torch.device) -> Chunk:
    """Return a copy of a chunk with other latents; resampling runs on the device."""
    samples = chunk.samples
    if speed != 1:
        played = resample(torch.from_numpy(samples).to(device).float(), speed)
        samples = played.round().clamp(-32767, 32767).short().cpu().numpy()
    offsets = np.minimum((chunk.offsets / speed).astype(np.int64), len(samples))
    instructions = chunk.instructions or ("",) * len(chunk.texts)
    pieces, lengths, groups = [], [], list(_group(chunk, speed, rng))
    for group in groups:
        parts = [_silence(LATEST, rng)]
        for place, index in enumerate(group):
            parts += [_silence(PAUSE, rng)] if place else []
            parts.append(samples[offsets[index] : offsets[index + 1]])
        pieces += parts
        lengths.append(sum(len(part) for part in parts))
    first = [group[0] for group in groups]
    return Chunk(
        np.concatenate(pieces),
        np.concatenate(([0], np.cumsum(lengths))),
        chunk.speakers[first] + SPEAKERS_APART * SPEEDS.index(speed),
        tuple(" ".join(chunk.texts[index] for index in group) for group in groups),
        tuple(instructions[index] for index in first),
    )


def _silence(most: float, rng: Random) -> np.ndarray:
    return np.zeros(rng.randrange(int(most * RATE)), dtype=np.int16)


def _group(chunk: Chunk, speed: float, rng: Random) -> Iterator[Sequence[int]]:
    """Yield every clip once: alone, or before another one of its speaker."""
    seconds = np.diff(chunk.offsets) / RATE / speed
    waiting: dict[int, int] = {}
    order = list(range(len(chunk.texts)))
    rng.shuffle(order)
    for index in order:
        if chunk.instructions and chunk.instructions[index]:
            yield (index,)
            continue
        speaker = int(chunk.speakers[index])
        other = waiting.pop(speaker, None)
        if other is not None and seconds[other] + seconds[index] + PAUSE <= LONGEST:
            yield (other, index)
        elif other is not None:
            yield from ((other,), (index,))
        elif rng.random() < JOINED:
            waiting[speaker] = index
        else:
            yield (index,)
    yield from ((index,) for index in waiting.values())


class Copies:
    """Gives every chunk of a corpus `count` times: as it is, and later changed."""

    def __init__(self, count: int, seed: int, device: torch.device) -> None:
        self._count, self._device = count, device
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
            yield change_chunk(chunk, SPEEDS[(number - 1) % len(SPEEDS)], self._rng, self._device)
            if number + 1 < self._count:
                self._due.append((chunk, number + 1))
