"""Speech on the device, from which the VAE's training cuts its crops."""

from collections.abc import Iterable

import torch
from torch import Tensor

from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.synthesize import RATE
from cookbook.ming_mini.vocode import HOP


class Tape:
    """Speech in one row of int16, from which crops are cut anywhere."""

    step = HOP
    """Crops begin with a frame, as clips do: the pulses of steady speech keep their places."""

    def __init__(self, hours: float, device: torch.device) -> None:
        self._samples = torch.zeros(int(hours * 3600 * RATE), dtype=torch.int16, device=device)
        self.length = 0

    @property
    def room(self) -> int:
        """Samples that can still be added."""
        return len(self._samples) - self.length

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Append chunks while there is room."""
        for chunk in chunks:
            self.append(torch.from_numpy(chunk.samples[: self.room]))

    def append(self, samples: Tensor) -> None:
        """Append int16 samples [n], for which there is room."""
        self._samples[self.length : self.length + len(samples)] = samples.to(self._samples.device)
        self.length += len(samples)

    def places(self, count: int, samples: int, generator: torch.Generator) -> Tensor:
        """Where `count` random crops of so many samples start: int64 [count, 1] on the host."""
        steps = (self.length - samples) // self.step
        return self.step * torch.randint(steps, (count, 1), generator=generator)

    def crops(self, places: Tensor, samples: int) -> Tensor:
        """Float crops [count, samples] in [-1, 1] from places [count, 1] on the device."""
        index = places + torch.arange(samples, device=places.device)
        return self._samples[index].float() / 32767


class HeardTape(Tape):
    """Speech beside the latents that a talker made of it, `step` samples each."""

    def __init__(self, hours: float, step: int, latent_dim: int, device: torch.device) -> None:
        super().__init__(hours, device)
        self.step = step
        shape = (len(self._samples) // step, latent_dim)
        self._latents = torch.zeros(shape, dtype=torch.float16, device=device)

    def append_heard(self, samples: Tensor, latents: Tensor) -> None:
        """Append int16 samples [n * step] and their latents [n, latent_dim]."""
        first = self.length // self.step
        self._latents[first : first + len(latents)] = latents.half()
        self.append(samples)

    def heard(self, places: Tensor, count: int) -> Tensor:
        """Latents [crops, count, latent_dim] in float32 of crops at places [crops, 1]."""
        index = places // self.step + torch.arange(count, device=places.device)
        return self._latents[index].float()


def vary(crops: Tensor, draws: Tensor) -> Tensor:
    """Crops at other loudness (6 dB either way); one in eight silent in a part of it.

    `draws` [3, count, 1] are uniform.
    """
    samples = crops.shape[1]
    gain, edge, kind = 2 ** (2 * draws[0] - 1), draws[1] * samples, draws[2] * 16
    place = torch.arange(samples, device=crops.device)
    silent = ((kind < 1) & (place < edge)) | ((kind > 15) & (place >= edge))
    return crops * gain * ~silent
