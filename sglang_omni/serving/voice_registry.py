"""Create the voice registry from a configuration."""

from collections.abc import Callable
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.models.registry import family_of
from sglang_omni.queueing.queue import AdmissionQueue
from sglang_omni.serving.engine_config import build_fetch_policy
from sglang_omni.voices.cloner import RecordingCloner, RecordingDecoder, RecordingRules
from sglang_omni.voices.registry import VoiceRegistry
from sglang_omni.voices.store import Quota, VoiceStore


def create_voice_registry(
    config: Config,
    checkpoint: Path,
    media_decoders: RecordingDecoder,
    talker: Engine,
    get_sample_rate: Callable[[], int],
    media_queue: AdmissionQueue,
) -> VoiceRegistry:
    """Create the registry and read the stored voices.

    `get_sample_rate` returns the talker's rate in Hz.

    Raises:
        ConfigError: The folder of voices cannot be used.
        CheckpointError: The weights that voices belong to cannot be read.
    """
    options = config.voices
    rules = RecordingRules(
        options.min_seconds, options.max_seconds, options.file_bytes, options.cached
    )
    policy = build_fetch_policy(config)
    cloner = RecordingCloner(policy, rules, media_decoders, talker, get_sample_rate, media_queue)
    if config.voices_dir is None:
        return VoiceRegistry(cloner, None)
    quota = Quota(options.stored, options.stored_per_key)
    store = VoiceStore(
        config.voices_dir, quota, family_of(checkpoint).voice_fingerprint(checkpoint)
    )
    store.load()
    return VoiceRegistry(cloner, store)
