"""The parallel training pass computes what the product's loop computes."""

import numpy as np
import pytest
import torch

from cookbook.ming_mini.batches import prompt_frame, row, shape_of, stack
from cookbook.ming_mini.flow import DeviceBatch, gather, host_tensors, teacher_forced
from cookbook.ming_mini.utterances import PatchStore, Utterance
from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.prompt import (
    PromptTokenizer,
    SpeechPrompt,
    build_initial_history,
    embed_prompt,
)
from sglang_omni.models.ming.speech.talker import Patch, Talker, generate

TEXT, PROMPT_TEXT = "Hello there.", "Good morning."
STEPS = 7


@pytest.mark.parametrize("prompt_patches", [0, 3, 10])
@pytest.mark.parametrize("in_text", [True, False])
@torch.no_grad()
def test_a_training_pass_equals_the_loop_that_made_its_patches(
    small_talker: Talker, tokenizer: PromptTokenizer, prompt_patches: int, in_text: bool
) -> None:
    torch.manual_seed(1)
    voice = torch.randn(prompt_patches, 4, 64).half().float()
    noise = [torch.randn(1, 4, 64) for _ in range(STEPS)]
    made = _loop(small_talker, tokenizer, voice, noise, in_text)
    store = PatchStore(100, 64, torch.device("cpu"))
    spoken = [_store(store, latents) for latents in (torch.stack([p.latents for p in made]), voice)]
    said, asked = (
        Utterance(0, first, count, np.array(tokenizer.encode(text)), 2.0)
        for (first, count), text in zip(spoken, (TEXT, PROMPT_TEXT), strict=True)
    )
    prompt = asked if prompt_patches else None
    # Beside it a shorter one; both are padded.
    short = Utterance(0, said.first, 2, said.tokens[:3], 0.5)
    frame = prompt_frame(tokenizer)
    rows = [row(frame, one, prompt, in_text) for one in (said, short)]
    batch = stack(rows, shape_of(10), 12, np.random.default_rng(0))
    arrays = DeviceBatch(*host_tensors(batch))
    heard, primed, past, aim = gather(store, arrays, torch.Generator())
    run = teacher_forced(small_talker, arrays, heard, primed, past)
    # The store keeps float16.
    torch.testing.assert_close(
        aim[0, :STEPS], torch.stack([p.latents for p in made]), rtol=0, atol=4e-3
    )
    states = torch.stack([patch.hidden for patch in made])
    torch.testing.assert_close(run.hidden[0, :STEPS], states, rtol=0, atol=2e-2)
    for step, y0 in enumerate(noise):
        again = small_talker.cfm.sample(
            run.hidden[:1, step], run.history[:1, step], y0, None, Sampling()
        )
        torch.testing.assert_close(again[0], made[step].latents, rtol=0, atol=2e-2)


def _loop(
    talker: Talker,
    tokenizer: PromptTokenizer,
    voice: torch.Tensor,
    noise: list[torch.Tensor],
    in_text: bool,
) -> list[Patch]:
    text = PROMPT_TEXT if in_text else None
    prompt = tokenizer.assemble(
        SpeechPrompt(TEXT, prompt_text=text, prompt_patches=len(voice) if in_text else 0)
    )
    embeds = talker.aggregator(voice) if len(voice) else None
    rows = embed_prompt(talker, prompt, None, embeds)
    history = build_initial_history(talker, voice.flatten(0, 1) if len(voice) else None)
    pairs = ((y0, None) for y0 in noise)
    return list(
        generate(
            talker, rows, history, pairs, min_patches=99, max_patches=STEPS, sampling=Sampling()
        )
    )


def _store(store: PatchStore, latents: torch.Tensor) -> tuple[int, int]:
    return store.add(latents, torch.zeros_like(latents)), len(latents)
