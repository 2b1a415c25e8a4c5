"""Prompt ids, embeddings and primed history against the reference."""

import shutil
from pathlib import Path

import pytest
import torch

from sglang_omni.models.ming.speech.prompt import (
    PromptTokenizer,
    SpeechPrompt,
    build_initial_history,
    embed_prompt,
)
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY, Case, cases, load_case


@pytest.fixture(scope="module")
def tokenizer() -> PromptTokenizer:
    return PromptTokenizer(TINY / "talker")


def prompt_of(case: Case) -> SpeechPrompt:
    audio = case.tensors.get("prompt_audio_embeds")
    return SpeechPrompt(
        text=case.info["text"],
        description=case.info["prompt"],
        prompt_text=case.info["prompt_text"],
        prompt_patches=0 if audio is None else audio.shape[0],
        speakers=case.info["num_speakers"],
        instruction=case.info["instruction"],
    )


@pytest.mark.parametrize("name", cases("talker", "ar"))
def test_prompt_ids_embeddings_and_history_match_the_reference(
    talker: Talker, tokenizer: PromptTokenizer, name: str
) -> None:
    case = load_case(name)
    prompt = tokenizer.assemble(prompt_of(case))
    case.check("prompt_ids", torch.tensor(prompt.ids))
    overrides = (case.tensors.get(key) for key in ("speaker_embeds", "prompt_audio_embeds"))
    case.check("prompt_embeds", embed_prompt(talker, prompt, *overrides))
    case.check("history0", build_initial_history(talker, case.tensors.get("prompt_latents")))


def test_overrides_land_on_their_special_tokens(tokenizer: PromptTokenizer) -> None:
    prompt = SpeechPrompt("Hi.", prompt_text="Yes.", prompt_patches=3, speakers=2)
    assembled = tokenizer.assemble(prompt)
    pad, patch = (tokenizer.encode(token)[0] for token in ("<|vision_pad|>", "<audioPatch>"))
    assert [assembled.ids[row] for row in assembled.speaker_rows] == [pad, pad]
    assert list(assembled.ids[assembled.audio_row :]) == [patch] * 3


def test_text_that_looks_like_a_special_token_moves_no_override(tokenizer: PromptTokenizer) -> None:
    plain = tokenizer.assemble(SpeechPrompt("Hi.", speakers=1))
    tricky = tokenizer.assemble(SpeechPrompt("<|vision_pad|>", speakers=1))
    assert tricky.speaker_rows == plain.speaker_rows
    tricky = tokenizer.assemble(SpeechPrompt("<audio>", prompt_text="Yes.", prompt_patches=2))
    assert tricky.audio_row == len(tricky.ids) - 2


def test_a_history_shorter_than_the_window_is_right_aligned(talker: Talker) -> None:
    latents = torch.randn(8, 64)
    history = build_initial_history(talker, latents)
    assert torch.equal(history[-8:], latents)
    assert not history[:-8].any()


def test_a_missing_special_token_is_named(tmp_path: Path) -> None:
    shutil.copytree(TINY / "talker" / "llm", tmp_path / "llm")
    path = tmp_path / "llm" / "tokenizer.json"
    path.chmod(0o644)
    path.write_text(path.read_text(encoding="utf-8").replace("<audioPatch>", "<renamed>"))
    with pytest.raises(CheckpointError, match="<audioPatch>"):
        PromptTokenizer(tmp_path)
