"""Recordings beside the latents that the talker makes of them, so that a decoder learns to hear it.

What a talker makes is smoother than what the encoder makes: a decoder that knows only the latter
is surprised. Patch after patch the talker goes on from the truth here, so that what it makes stays
in step with the recording.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini.batches import Batch, Batcher, prompt_frame
from cookbook.ming_mini.corpus import Chunk, CorpusFolder
from cookbook.ming_mini.flow import Arrays, gather, host_tensors, teacher_forced
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.synthesize import RATE
from cookbook.ming_mini.tape import HeardTape
from cookbook.ming_mini.trained import load_packed, mini_tokenizer, trained_vae
from cookbook.ming_mini.utterances import PATCH, SHORTEST_PATCHES, Library, PatchStore
from sglang_omni.models.ming.cfm import Sampling
from sglang_omni.models.ming.talker import Talker
from sglang_omni.models.ming.vae import AudioVAE

PATCHES = 2048
"""That are made at once."""
CLIPS_AT_ONCE = 4000
"""Whose speakers serve each other as prompts."""
SEED = 0


def heard_tape(
    talker: Path, vae: Path, corpus: CorpusFolder, hours: float, device: torch.device
) -> HeardTape:
    """A tape of the corpus as packed `talker` and `vae` make it; reads as much as it has room for.

    Raises `TimeoutError` if the corpus has nothing.
    """
    config, vae_config = configurations()
    speaker = Talker(config)
    load_packed(speaker, talker)
    again = SayAgain(speaker.to(device).eval(), trained_vae(vae_config, vae, device), SEED)
    step = vae_config.samples_per_latent
    tape = HeardTape(hours, step, vae_config.decoder.latent_dim, device)
    chunks = list(corpus.wait(120))
    while chunks and not again.fill(tape, chunks):
        chunks = list(corpus.new_chunks(CLIPS_AT_ONCE // len(chunks[0].texts)))
    print(f"{tape.length / RATE / 3600:.2f} h as the talker makes them", flush=True)
    return tape


class SayAgain:
    """The talker, saying what was recorded."""

    def __init__(self, talker: Talker, vae: AudioVAE, seed: int) -> None:
        self._talker, self._vae, self._seed = talker, vae, seed
        self._tokenizer = mini_tokenizer()
        self._device = next(talker.parameters()).device
        self._random = torch.Generator(self._device).manual_seed(seed)

    def fill(self, tape: HeardTape, chunks: Sequence[Chunk]) -> bool:
        """Append every clip of the chunks, as whole patches; True once one has no room."""
        clips = [chunk.clip(index) for chunk in chunks for index in range(len(chunk.texts))]
        samples = PATCH * tape.step
        # Each clip as something to say, and once more as a prompt; short ones are padded.
        room = 2 * sum(len(clip) // samples + SHORTEST_PATCHES for clip in clips)
        library = Library(self._vae, room, self._device)
        library.add(chunks, [self._tokenizer.encode(t) for chunk in chunks for t in chunk.texts])
        frame = prompt_frame(self._tokenizer)
        for said, batch in Batcher(library.tables, frame, PATCHES, self._seed).every():
            made = self.make(library.store, batch).flatten(1, 2)
            for one, latents in zip(said, made, strict=True):
                clip = clips[one.clip]
                wave = np.zeros(one.patches * samples, dtype=np.int16)
                wave[: len(clip)] = clip
                if len(wave) > tape.room:
                    return True
                tape.append_heard(torch.from_numpy(wave), latents[: one.patches * PATCH])
        return False

    @torch.no_grad()
    def make(self, store: PatchStore, batch: Batch) -> Tensor:
        """Patches [B, P, 4, 64] of a batch, each made behind those that were recorded."""
        arrays = Arrays(*(array.to(self._device) for array in host_tensors(batch)))
        heard, primed, past, aim = gather(store, arrays, self._random)
        run = teacher_forced(self._talker, arrays, heard, primed, past, guided=False)
        exists, made = arrays.exists, torch.zeros_like(aim)
        noise = torch.randn(aim.shape, generator=self._random, device=self._device)
        made[exists] = self._talker.cfm.sample(
            run.hidden[exists], run.history[exists], noise[exists], None, Sampling()
        )
        return made
