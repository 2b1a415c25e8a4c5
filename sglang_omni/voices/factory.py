"""From a configuration to the voices that users bring."""

import hashlib
from pathlib import Path

from sglang_omni.admission.queue import AdmissionQueue
from sglang_omni.config.options import Config
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.protocol.errors import CheckpointError
from sglang_omni.serving.engine_config import build_fetch_policy
from sglang_omni.voices.cloner import Cloner, RecordingDecoder, RecordingRules
from sglang_omni.voices.registry import VoiceRegistry
from sglang_omni.voices.store import Quota, VoiceStore

# Enough of a file of weights to tell one training from another, little enough to read at a start.
SAMPLE_BYTES = 1 << 20


def open_shelf(
    config: Config, checkpoint: Path, intake: RecordingDecoder, talker: Engine, room: AdmissionQueue
) -> VoiceRegistry:
    """Read what is stored. Raises `ConfigError` for a folder that cannot be used, and
    `CheckpointError` without an audio VAE."""
    options = config.voices
    rules = RecordingRules(
        options.min_seconds, options.max_seconds, options.file_bytes, options.cached
    )
    cloner = Cloner(build_fetch_policy(config), rules, intake, talker, room)
    if config.voices_dir is None:
        return VoiceRegistry(cloner, None)
    quota = Quota(options.stored, options.stored_per_key)
    store = VoiceStore(config.voices_dir, quota, vae_fingerprint(checkpoint))
    store.load()
    return VoiceRegistry(cloner, store)


def vae_fingerprint(checkpoint: Path) -> str:
    """Stands for the weights of the audio VAE, whose latents a stored voice is."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        for path in sorted((checkpoint / "talker" / "vae").glob("*.safetensors")):
            digest.update(str(path.stat().st_size).encode())
            with path.open("rb") as file:
                digest.update(file.read(SAMPLE_BYTES))
    except OSError as error:
        raise CheckpointError(f"{checkpoint}: {error.strerror}") from None
    return digest.hexdigest()
