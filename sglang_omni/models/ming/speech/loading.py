"""Load the talker folder of a checkpoint: modules, tokenizer and voices."""

from dataclasses import dataclass

import torch

from sglang_omni.engines.runtime.worker import report_progress
from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from sglang_omni.models.ming.speech.speaker_encoder import SpeakerEncoder
from sglang_omni.models.ming.speech.talker import Talker, load_talker
from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae
from sglang_omni.models.ming.speech.voices import VoicePrompt, load_voices, open_speaker_encoder
from sglang_omni.protocol.errors import CheckpointError, ConfigError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class SpeechModel:
    """The loaded modules of the talker folder.

    `speaker_encoder` is None where the checkpoint has none.
    """

    talker: Talker
    vae: AudioVAE
    tokenizer: PromptTokenizer
    voices: dict[str, VoicePrompt]
    speaker_encoder: SpeakerEncoder | None


def load_speech_model(settings: TalkerSettings) -> SpeechModel:
    """Load the modules, the tokenizer and the voices of `settings.checkpoint / "talker"`.

    Raises:
        CheckpointError: The checkpoint is incomplete or has no voices.
        ConfigError: The dtype is unknown.
    """
    if settings.dtype not in DTYPES:
        raise ConfigError(f"talker dtype {settings.dtype!r} is not one of {', '.join(DTYPES)}")
    device, dtype = torch.device(settings.device), DTYPES[settings.dtype]
    folder = settings.checkpoint / "talker"
    report_progress("loading talker weights")
    talker = load_talker(folder, device, dtype)
    vae = load_vae(folder / "vae", device, dtype)
    report_progress("registering voices")
    speaker_encoder = open_speaker_encoder(folder)
    voices = load_voices(settings.checkpoint, talker, vae, speaker_encoder)
    if not voices:
        raise CheckpointError(f"{folder} has no voices")
    return SpeechModel(talker, vae, PromptTokenizer(folder), voices, speaker_encoder)
