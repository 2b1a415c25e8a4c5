"""The parallel training pass computes what the product's loop computes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cookbook.ming_mini.batches import HISTORY, prompt_frame, row, shape_of, stack
from cookbook.ming_mini.compilation import Runner, choose_runner, run_eager
from cookbook.ming_mini.flow import DeviceBatch, gather, host_tensors, teacher_forced
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.talker_init import new_talker
from cookbook.ming_mini.utterances import PatchStore, Utterance
from cookbook.ming_mini_2.voices.layout import VOICES
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
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
@pytest.mark.parametrize("patch", [2, 4])
@torch.no_grad()
def test_a_training_pass_equals_the_loop_that_made_its_patches(
    small_configs: tuple[TalkerConfig, VAEConfig],
    tokenizer: PromptTokenizer,
    prompt_patches: int,
    in_text: bool,
    patch: int,
) -> None:
    config = replace(small_configs[0], patch_size=patch, history_patch_size=HISTORY * patch)
    small_talker = new_talker(config, seed=0)
    torch.manual_seed(1)
    voice = torch.randn(prompt_patches, patch, 64).half().float()
    noise = [torch.randn(1, patch, 64) for _ in range(STEPS)]
    made = _loop(small_talker, tokenizer, voice, noise, in_text)
    store = PatchStore(100, 64, torch.device("cpu"), patch)
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
    batch = stack(rows, shape_of(10 * patch, patch), 12, np.random.default_rng(0))
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


@pytest.mark.gpu
def test_a_compiled_backbone_has_the_gradients_of_an_eager_one(tokenizer: PromptTokenizer) -> None:
    device = torch.device("cuda")
    talker = new_talker(configurations(VOICES)[0], seed=0).to(device)
    frame, store = prompt_frame(tokenizer), PatchStore(5000, 64, device)
    store.add(torch.randn(4000, 4, 64), torch.rand(4000, 4, 64))
    compiled_run = choose_runner(True, device, dynamic=True)

    def gradients(run: Runner, patches: int) -> dict[str, torch.Tensor]:
        talker.zero_grad(set_to_none=True)
        text = np.arange(3 * patches) % 60
        said = [Utterance(0, 1 + 2 * n, patches - n % 2, text, 0.3 * patches) for n in range(60)]
        rows = [row(frame, one, said[0], patches < 16) for one in said]
        batch = stack(rows, shape_of(4 * patches), 12, np.random.default_rng(0))
        arrays = DeviceBatch(*(one.to(device) for one in host_tensors(batch)))
        random = torch.Generator(device).manual_seed(patches)
        heard, primed, past, aim = gather(store, arrays, random)
        with torch.autocast("cuda", torch.bfloat16):
            made = teacher_forced(talker, arrays, heard, primed, past, run=run)
            error = (made.hidden[..., :64] - aim[:, :, 0]).square().mean()
        (error + made.misplaced).backward()
        named = talker.named_parameters()
        return {name: one.grad.clone() for name, one in named if one.grad is not None}

    # A first step may be right by chance, in memory that is still new.
    for patches in (8, 12, 20, 8, 12, 20):
        plain, compiled = gradients(run_eager, patches), gradients(compiled_run, patches)
        assert plain.keys() == compiled.keys()
        for name, wanted in plain.items():
            # What is added to all keys changes no attention: that gradient is rounding alone.
            if not name.endswith("k_proj.bias"):
                assert (compiled[name] - wanted).norm() <= 0.1 * wanted.norm(), (patches, name)
