"""From a configuration to the voices that users bring."""

from pathlib import Path

from sglang_omni.admission.queue import AdmissionQueue
from sglang_omni.config.options import Config
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.models.registry import family_of
from sglang_omni.serving.engine_config import fetch_policy
from sglang_omni.voices.cloner import Cloner, RecordingDecoder, RecordingRules
from sglang_omni.voices.registry import VoiceRegistry
from sglang_omni.voices.store import Quota, VoiceStore


def open_shelf(
    config: Config,
    checkpoint: Path,
    media_decoder: RecordingDecoder,
    talker: Engine,
    room: AdmissionQueue,
) -> VoiceRegistry:
    """Read what is stored. Raises `ConfigError` for a folder that cannot be used, and
    `CheckpointError` without an audio VAE."""
    options = config.voices
    rules = RecordingRules(
        options.min_seconds, options.max_seconds, options.file_bytes, options.cached
    )
    cloner = Cloner(fetch_policy(config), rules, media_decoder, talker, room)
    if config.voices_dir is None:
        return VoiceRegistry(cloner, None)
    quota = Quota(options.stored, options.stored_per_key)
    store = VoiceStore(
        config.voices_dir, quota, family_of(checkpoint).voice_fingerprint(checkpoint)
    )
    store.load()
    return VoiceRegistry(cloner, store)
