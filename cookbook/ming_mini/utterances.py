"""Speech for the talker's training: latents of every clip on the device, tables on the host.

Every clip is encoded in the two ways of the product: as speech to generate (followed by silence up
to whole patches, and up to the shortest speech that the stop rule can end) and, if it is short, as
a voice prompt (with silence before it).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from random import Random

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.vocoder import RATE
from sglang_omni.models.ming.speech.vae import AudioVAE

PATCH = 4
"""Latents of a patch, as in the released model."""
MIN_PATCHES = 5
"""The stop rule fires only past step 3."""
PROMPT_SECONDS = (1.0, 4.5)
ENCODE_SAMPLES = 300 * RATE
"""Padded samples that are encoded at once."""


@dataclass(frozen=True)
class Utterance:
    """A stretch of the store: `first` patch, number of `patches`, and the text.

    `tokens` int [n] are the text's ids, `seconds` is the length of the clip without padding.
    `instruction` int [n] are the ids of the instruction that it follows, if any.
    """

    speaker: int
    first: int
    patches: int
    tokens: np.ndarray
    seconds: float
    instruction: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass
class UtteranceTables:
    """Utterances by their number of patches of `patch` latents, and each speaker's voice prompts.

    Those that are clips are `prompts`, those that are as people upload them `recordings`.
    """

    patch: int = PATCH
    by_patches: dict[int, list[Utterance]] = field(default_factory=dict)
    prompts: dict[int, list[Utterance]] = field(default_factory=dict)
    recordings: dict[int, list[Utterance]] = field(default_factory=dict)
    count: int = 0
    seconds: float = 0.0

    def add_utterance(self, one: Utterance) -> None:
        """Add an utterance to learn."""
        self.by_patches.setdefault(one.patches, []).append(one)
        self.count += 1
        self.seconds += one.seconds

    def add_prompt(self, one: Utterance, recorded: bool = False) -> None:
        """Add a voice prompt, a clip or a recording."""
        prompts = self.recordings if recorded else self.prompts
        prompts.setdefault(one.speaker, []).append(one)


class PatchStore:
    """Posteriors of patches on the device: mean and deviation [patches, 4, 64] in float16.

    Other models may have other numbers of latents in a patch than 4.

    Patch 0 is the absent one: all zeros.
    """

    def __init__(
        self, capacity: int, latent: int, device: torch.device, patch: int = PATCH
    ) -> None:
        """Make room for `capacity` patches of `patch` latents."""
        shape = (2, capacity, patch, latent)
        self._values = torch.zeros(shape, dtype=torch.float16, device=device)
        self.length, self.capacity = 1, capacity

    def add(self, mean: Tensor, std: Tensor) -> int:
        """Append patches [n, 4, 64]. Returns the number of the first."""
        first = self.length
        self.length += len(mean)
        self._values[0, first : self.length] = mean.half()
        self._values[1, first : self.length] = std.half()
        return first

    def mean(self, index: Tensor) -> Tensor:
        """Return the means of patches `index` [...]: float32 [..., 4, 64]."""
        return self._values[0, index].float()

    def sample(self, index: Tensor, generator: torch.Generator) -> Tensor:
        """Draw from the posteriors of patches `index`: float32 [..., 4, 64]."""
        mean, std = self._values[:, index].float()
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        return mean + std * noise


class Library:
    """Encode chunks of a corpus with the trained VAE into a store and its tables."""

    def __init__(
        self,
        vae: AudioVAE,
        capacity: int,
        device: torch.device,
        shifted: float = 0.0,
        patch: int = PATCH,
    ) -> None:
        """Make room for `capacity` patches of `patch` latents.

        A share `shifted` of the voice prompts begins anywhere in a latent, as a user's recording
        does; the others begin where a latent does.
        """
        self._vae, self._device = vae, device
        self._shifted, self._rng = shifted, Random(f"library {capacity}")
        self._patch, self._patch_samples = patch, vae.config.samples_per_latent * patch
        self.store = PatchStore(capacity, vae.config.decoder.latent_dim, device, patch)
        self.tables = UtteranceTables(patch)

    def add(
        self,
        chunks: Iterable[Chunk],
        tokens: Sequence[Sequence[int]],
        instructions: Sequence[Sequence[int]] = (),
    ) -> None:
        """Encode and add every clip of the chunks while there is room.

        `tokens` has the ids of all texts, in their order; `instructions` those of what the clips
        follow, or nothing if none follows any. A clip that follows one is no voice prompt.
        """
        ids = iter(tokens)
        captions = iter(instructions or [()] * len(tokens))
        for chunk in chunks:
            texts = [np.asarray(next(ids)) for _ in chunk.texts]
            self._add(chunk, texts, [np.array(next(captions), np.int64) for _ in chunk.texts])

    def _add(
        self, chunk: Chunk, tokens: Sequence[np.ndarray], captions: Sequence[np.ndarray]
    ) -> None:
        lengths = np.diff(chunk.offsets)
        seconds = lengths / RATE
        needed = [int(-(-length // self._patch_samples)) for length in lengths]
        said = [max(MIN_PATCHES, patches) for patches in needed]
        speakers = chunk.speakers.tolist()
        for index, first in self._encode(chunk, range(len(said)), said, ahead=False):
            spoken = Utterance(speakers[index], first, said[index], tokens[index], seconds[index])
            self.tables.add_utterance(replace(spoken, instruction=captions[index]))
        plain = [index for index, caption in enumerate(captions) if len(caption) == 0]
        self._add_prompts(chunk, tokens, plain)
        if (some := chunk.recordings) is not None:
            texts = [tokens[index] for index in some.clips]
            chosen = chunk.select_recorded(some)
            self._add_prompts(chosen, texts, range(len(texts)), recorded=True)

    def _add_prompts(
        self,
        chunk: Chunk,
        tokens: Sequence[np.ndarray],
        clips: Iterable[int],
        recorded: bool = False,
    ) -> None:
        """Encode and add those of the clips that are as long as a voice prompt."""
        lengths = np.diff(chunk.offsets)
        seconds, speakers = lengths / RATE, chunk.speakers.tolist()
        needed = [int(-(-length // self._patch_samples)) for length in lengths]
        low, high = PROMPT_SECONDS
        short = [index for index in clips if low <= seconds[index] <= high]
        for index, first in self._encode(chunk, short, needed, ahead=True):
            spoken = Utterance(speakers[index], first, needed[index], tokens[index], seconds[index])
            self.tables.add_prompt(spoken, recorded)

    @torch.no_grad()
    def _encode(
        self, chunk: Chunk, clips: Iterable[int], patches: Sequence[int], ahead: bool
    ) -> Iterator[tuple[int, int]]:
        """Encode clips padded to `patches`; yields each clip and its first patch in the store."""
        for group in _groups(clips, patches, ENCODE_SAMPLES // self._patch_samples):
            if self.store.length + sum(patches[index] for index in group) > self.store.capacity:
                return
            longest = max(patches[index] for index in group) * self._patch_samples
            ends = [patches[index] * self._patch_samples if ahead else None for index in group]
            waves = np.zeros((len(group), longest), dtype=np.int16)
            for wave, index, end in zip(waves, group, ends, strict=True):
                clip = chunk.clip(index)
                start = 0 if end is None else self._shift(end - len(clip))
                wave[start : start + len(clip)] = clip
            posterior = self._vae.encoder(torch.from_numpy(waves).to(self._device).float() / 32767)
            # The encoder is causal: padding after a clip does not change its latents.
            counts = [patches[index] for index in group]
            kept = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
            kept = kept.to(self._device)
            mean, std = (
                x.unflatten(1, (-1, self._patch))[kept] for x in (posterior.mean, posterior.std)
            )
            first = self.store.add(mean, std)
            yield from zip(group, accumulate(counts[:-1], initial=first), strict=True)

    def _shift(self, room: int) -> int:
        """Return where a voice prompt begins that has `room` for silence before it."""
        if self._rng.random() >= self._shifted:
            return room
        return room - self._rng.randrange(min(room + 1, self._vae.config.samples_per_latent))


def _groups(clips: Iterable[int], patches: Sequence[int], most: int) -> Iterator[list[int]]:
    """Group clips of about equal length, with at most `most` padded patches in a group."""
    group: list[int] = []
    for index in sorted(clips, key=lambda index: -patches[index]):
        if group and (len(group) + 1) * patches[group[0]] > most:
            yield group
            group = []
        group.append(index)
    if group:
        yield group
