"""Ming's talker and audio VAE as a `SpeechModel`."""

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.executor import PlainExecutor
from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.ming.speech.prompt import SPEECH_TASK, PromptIds, SpeechPrompt
from sglang_omni.models.ming.speech.silence import SilenceTrimmer
from sglang_omni.models.ming.speech.talker import STOP_THRESHOLD
from sglang_omni.models.ming.speech.voices import (
    VoicePrompt,
    build_empty_voice,
    build_voice_prompt,
    encode_voice,
)
from sglang_omni.models.ming.text.duration import estimate_max_duration_s
from sglang_omni.models.ming.text.marks import write_in_marks
from sglang_omni.models.speech import (
    EncodedRecording,
    ExecutorSettings,
    SpeechExecutor,
    SpeechModelInfo,
)
from sglang_omni.models.speech_text import SpeechStyle


@dataclass(frozen=True)
class MingSpeechInput:
    """Prompt, voice and sampling of one fragment."""

    prompt: PromptIds
    voice: VoicePrompt
    sampling: Sampling = field(default_factory=Sampling)

    @property
    def num_tokens(self) -> int:
        """Return the positions that the prompt takes."""
        return len(self.prompt.ids)


class MingSpeechModel:
    """Implements `SpeechModel` over the modules of a talker folder."""

    def __init__(
        self, modules: SpeechModules, marks: str | None = None, keeps_prompt: bool = False
    ) -> None:
        """Wrap the modules.

        `marks` are the punctuation that the talker knows, None if any; with `keeps_prompt` it is
        given the words of a recording under instructions too.
        """
        self.modules, self._marks, self._keeps_prompt = modules, marks, keeps_prompt
        self.voices = modules.voices
        self.device = modules.talker.stop_head.weight.device
        self.info = SpeechModelInfo(
            modules.vae.config.sample_rate,
            modules.patch_s,
            tuple(modules.voices),
            modules.speaker_encoder is not None,
            STOP_THRESHOLD,
        )

    def no_voice(self) -> VoicePrompt:
        """See `SpeechModel`."""
        return build_empty_voice(self.modules.talker)

    def encode_voice(self, key: str, samples: Tensor, sample_rate: int) -> EncodedRecording:
        """See `SpeechModel`."""
        one = self.modules
        latents, vector = encode_voice(
            key, samples, sample_rate, one.talker, one.vae, one.speaker_encoder
        )
        parts = [latents.float().cpu().flatten().numpy()]
        if vector is not None:
            parts.append(vector.numpy())
        speaker = 0 if vector is None else len(vector)
        return EncodedRecording(np.concatenate(parts), len(latents), speaker)

    def read_voice(self, key: str, text: str | None, values: Tensor, latents: int) -> VoicePrompt:
        """See `SpeechModel`."""
        talker, speakers = self.modules.talker, self.modules.speaker_encoder
        size = latents * talker.config.latent_dim
        rows = values[:size].unflatten(0, (latents, -1))
        vector = values[size:] if len(values) > size and speakers is not None else None
        said = self._write(text) if text else text
        return build_voice_prompt(key, said, rows, vector, talker)

    def prepare(self, text: str, voice: VoicePrompt, style: SpeechStyle) -> MingSpeechInput:
        """See `SpeechModel`."""
        cfg = self.modules.talker.config.cfg_strength if style.cfg is None else style.cfg
        written = self._write(text) if style.description is None else text
        parts = build_speech_prompt(written, voice, style, self._keeps_prompt)
        prompt = self.modules.tokenizer.assemble(parts)
        return MingSpeechInput(prompt, voice, Sampling(cfg, style.sigma, style.temperature))

    def _write(self, text: str) -> str:
        """Return a text to speak in the punctuation that the talker knows."""
        return text if self._marks is None else write_in_marks(text, self._marks)

    def max_frames(self, text: str) -> int:
        """See `SpeechModel`."""
        return max_patches(text, self.modules.patch_s)

    def open_executor(self, settings: ExecutorSettings) -> SpeechExecutor:
        """Return graphs on CUDA unless they are switched off, else the plain executor."""
        if self.device.type != "cuda" or not settings.graphs:
            return PlainExecutor(self.modules, settings.slots, settings.context)
        # Imported here because Triton is neither needed nor always there without a GPU.
        from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor

        return GraphExecutor(
            self.modules, settings.slots, settings.context, settings.max_frames, fp8=settings.fp8
        )

    def open_trimmer(self) -> SilenceTrimmer:
        """See `SpeechModel`."""
        return SilenceTrimmer(self.info.sample_rate)


def max_patches(text: str, patch_s: float) -> int:
    """Return the most patches of `patch_s` seconds that reading `text` can reasonably take."""
    return max(1, int(estimate_max_duration_s(text) / patch_s))


def build_speech_prompt(
    text: str, voice: VoicePrompt, style: SpeechStyle, keeps_prompt: bool = False
) -> SpeechPrompt:
    """Return what the talker is given to speak `text`.

    Under a caption the recording only primes the history, as in the released demos: its words
    would set the tone that the caption is to set. A talker that has learnt both at once keeps them
    (`keeps_prompt`), and the voice with them.
    """
    has_words = keeps_prompt or style.instruction is None
    return SpeechPrompt(
        text,
        description=SPEECH_TASK if style.description is None else style.description,
        prompt_text=voice.text if has_words else None,
        prompt_patches=len(voice.embeds),
        speakers=0 if voice.speaker is None else 1,
        instruction=style.instruction,
    )
