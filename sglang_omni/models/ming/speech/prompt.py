"""The talker prompt: token ids, and the embeddings that replace some of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from sglang_omni.models.ming.speech.caption import MUSIC_FIELDS
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.protocol.errors import CheckpointError

SPEECH_TASK = "Please generate speech based on the following description.\n"
SYSTEM = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
TEXT_INPUT = " Text input:\n"
USER, ASSISTANT = "<|im_start|>user\n", "<|im_start|>assistant\n"
IM_START, IM_END = "<|im_start|>", "<|im_end|>"
SPEAKER_START, SPEAKER, SPEAKER_END = "<|vision_start|>", "<|vision_pad|>", "<|vision_end|>"
AUDIO, AUDIO_PATCH = "<audio>", "<audioPatch>"
SPECIALS = (IM_START, IM_END, SPEAKER_START, SPEAKER, SPEAKER_END, AUDIO, AUDIO_PATCH)


@dataclass(frozen=True)
class SpeechPrompt:
    """Text for the talker to speak, and how to speak it.

    `prompt_text` is the transcript of the voice prompt. It is used only together with
    `prompt_patches`, the number of patches of the voice prompt; a voice prompt without a transcript
    only primes the history. `speakers` is the number of speaker vectors, `instruction` the JSON
    caption of the instruct mode.
    """

    text: str
    description: str = SPEECH_TASK
    prompt_text: str | None = None
    prompt_patches: int = 0
    speakers: int = 0
    instruction: str | None = None

    @property
    def has_prompt_audio(self) -> bool:
        """Whether the prompt contains the transcript and the patches of the voice prompt."""
        return self.prompt_text is not None and self.prompt_patches > 0


@dataclass(frozen=True)
class PromptIds:
    """Token ids, and the rows whose embeddings are replaced.

    `speaker_rows` holds one row per speaker. The prompt audio has the `audio_patches` rows from
    `audio_row` on.
    """

    ids: tuple[int, ...]
    speaker_rows: tuple[int, ...]
    audio_row: int
    audio_patches: int


class PromptTokenizer:
    """The talker's own tokenizer (`talker/llm/tokenizer.json`); adds no tokens by itself.

    Raises:
        CheckpointError: The file is missing, or a special token is not a single token.
    """

    def __init__(self, talker: Path) -> None:
        path = talker / "llm" / "tokenizer.json"
        if not path.exists():
            raise CheckpointError(f"{path} is missing")
        self._tokenizer = Tokenizer.from_file(str(path))
        for token in SPECIALS:
            if len(self.encode(token)) != 1:
                raise CheckpointError(f"{path}: {token!r} must be a single token")

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def assemble(self, prompt: SpeechPrompt) -> PromptIds:
        """Tokenize the prompt. Each part is tokenized by itself, as in training."""
        ids = self._encode_all((SYSTEM, USER, prompt.description))
        speaker_rows: list[int] = []
        for number in range(1, prompt.speakers + 1):
            ids += self._encode_all((f"  speaker_{number}:", SPEAKER_START))
            speaker_rows.append(len(ids))
            ids += self._encode_all((SPEAKER, SPEAKER_END + "\n"))
        ids += self._encode_all(_iter_body(prompt))
        audio_row = len(ids)
        patches = prompt.prompt_patches if prompt.has_prompt_audio else 0
        ids += self.encode(AUDIO_PATCH) * patches
        return PromptIds(tuple(ids), tuple(speaker_rows), audio_row, patches)

    def _encode_all(self, texts: Iterable[str]) -> list[int]:
        return [token for text in texts for token in self.encode(text)]


def _iter_body(prompt: SpeechPrompt) -> Iterator[str]:
    """Yield the strings after the speakers, up to and including `<audio>`."""
    # Descriptions of music do not have this line.
    if not all(field in prompt.text for field in MUSIC_FIELDS):
        yield TEXT_INPUT
    if prompt.has_prompt_audio:
        assert prompt.prompt_text is not None
        yield prompt.prompt_text
    yield prompt.text
    yield IM_END + "\n"
    yield ASSISTANT
    if prompt.instruction is not None:
        yield prompt.instruction
        yield IM_END
    yield AUDIO


def embed_prompt(
    talker: Talker, prompt: PromptIds, speakers: Tensor | None, audio: Tensor | None
) -> Tensor:
    """Return prompt embeddings [length, hidden].

    Args:
        talker: The talker, whose token embeddings are used.
        prompt: The ids of the prompt, and the rows to replace.
        speakers: [count, hidden], replace the speaker rows (a zero vector is the "zero speaker").
        audio: [patches, hidden], the aggregated voice prompt, replaces the rows after `<audio>`.
    """
    table = talker.model.embed_tokens
    rows = table(torch.tensor(prompt.ids, device=table.weight.device))
    if speakers is not None:
        rows[list(prompt.speaker_rows)] = speakers.to(rows)
    if audio is not None and prompt.audio_patches:
        rows[prompt.audio_row : prompt.audio_row + prompt.audio_patches] = audio.to(rows)
    return rows


def build_initial_history(talker: Talker, latents: Tensor | None) -> Tensor:
    """Return the history [past, latent] before the first patch: zeros, then prompt latents.

    `latents` [time, latent] are those of the voice prompt. They prime the history even where the
    prompt has no transcript, and thus no audio rows.
    """
    config, like = talker.config, talker.stop_head.weight
    history = like.new_zeros(config.history_patch_size, config.latent_dim)
    if latents is not None:
        recent = latents[-config.history_patch_size :]
        history[config.history_patch_size - recent.shape[0] :] = recent
    return history
