"""Load the talker folder of a checkpoint: modules, tokenizer and voices."""

from dataclasses import dataclass
from pathlib import Path

import torch

from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from sglang_omni.models.ming.speech.speaker_encoder import SpeakerEncoder
from sglang_omni.models.ming.speech.talker import Talker, load_talker
from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae
from sglang_omni.models.ming.speech.voices import VoicePrompt, load_voices, open_speaker_encoder
from sglang_omni.protocol.errors import CheckpointError, ConfigError
from sglang_omni.system.progress import report_progress

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class SpeechModules:
    """The loaded modules of the talker folder.

    `speaker_encoder` is None where the checkpoint has none.
    """

    talker: Talker
    vae: AudioVAE
    tokenizer: PromptTokenizer
    voices: dict[str, VoicePrompt]
    speaker_encoder: SpeakerEncoder | None

    @property
    def patch_s(self) -> float:
        """Return the seconds of audio of one patch."""
        samples = self.vae.config.samples_per_latent * self.talker.config.patch_size
        return samples / self.vae.config.sample_rate


def load_modules(checkpoint: Path, device: str = "cpu", dtype: str = "float32") -> SpeechModules:
    """Load the modules, the tokenizer and the voices of `checkpoint / "talker"`.

    Raises:
        CheckpointError: The checkpoint is incomplete or has no voices.
        ConfigError: The dtype is unknown.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"talker dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    where, served = torch.device(device), DTYPES[dtype]
    folder = checkpoint / "talker"
    report_progress("loading talker weights")
    talker = load_talker(folder, where, served)
    vae = load_vae(folder / "vae", where, served)
    report_progress("registering voices")
    speaker_encoder = open_speaker_encoder(folder)
    voices = load_voices(checkpoint, talker, vae, speaker_encoder)
    if not voices:
        raise CheckpointError(f"{folder} has no voices")
    return SpeechModules(talker, vae, PromptTokenizer(folder), voices, speaker_encoder)
