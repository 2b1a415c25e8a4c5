"""Holds the engines that process media: decoder processes and encoders."""

import asyncio
from dataclasses import replace
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.encoder.cache import EmbeddingCache
from sglang_omni.engines.encoder.client import EncoderClient
from sglang_omni.engines.media_decoder.pool import MediaDecoderPool
from sglang_omni.media.limits import Kind
from sglang_omni.models.registry import family_of
from sglang_omni.pipeline.async_streams import gather_or_cancel
from sglang_omni.pipeline.media_preprocessor import MediaPreprocessor, create_media_queue
from sglang_omni.serving.autoscaling import create_pool
from sglang_omni.serving.engine_config import (
    build_encoder_specs,
    build_fetch_policy,
    build_media_decoder_settings,
    build_media_rules,
    build_output_rules,
)
from sglang_omni.serving.places import build_decoder_move

# Decoders are stateless; stop them quickly.
MEDIA_DECODER_STOP_S = 2.0


class MediaEngines:
    """Media decoders, encoder engines (`pools` of replicas) and the cache in front of each.

    A text-only server has no encoders, and its `preprocessor` rejects media. It still decodes the
    recordings of voices.
    """

    def __init__(self, config: Config, checkpoint: Path) -> None:
        """Create the engines without starting them. Raises `ConfigError`."""
        specs = build_encoder_specs(config, checkpoint)
        media_format = family_of(checkpoint).media_format
        rules = build_media_rules(config, media_format.rules)
        self.decoders = MediaDecoderPool(
            build_media_decoder_settings(config, rules),
            processes=config.media.processes,
            max_held_bytes=config.media.max_held_bytes,
            output=build_output_rules(config),
            move=build_decoder_move(config),
        )
        self.decode_queue = create_media_queue()
        # One engine may serve several kinds of media.
        by_name = {replicas[0].name: replicas for replicas in specs.values()}
        self.pools = {name: create_pool(config, replicas) for name, replicas in by_name.items()}
        cache_bytes: dict[Kind, int] = {
            "image": config.image_encoder.cache_bytes,
            "audio": config.audio_encoder.cache_bytes,
        }
        self._engine_names = {kind: specs[kind][0].name for kind in cache_bytes if specs}
        self._clients = {
            kind: EncoderClient(self.pools[name], EmbeddingCache(cache_bytes[kind]))
            for kind, name in self._engine_names.items()
        }
        client_kinds: dict[Kind, Kind] = {"image": "image", "video": "image", "audio": "audio"}
        encoders = {kind: self._clients[client_kinds[kind]] for kind in specs}
        self.preprocessor = MediaPreprocessor(
            build_fetch_policy(config),
            replace(media_format, rules=rules),
            self.decoders,
            encoders,
            self.decode_queue,
        )

    async def start(self) -> None:
        """Start every process. Raises the `StartupError` of the first one that fails."""
        starts = (pool.start() for pool in self.pools.values())
        await gather_or_cancel([self.decoders.start(), *starts])

    async def stop(self, deadline_s: float = 10.0) -> None:
        """Stop every process; kill the encoders that still run after `deadline_s`."""
        stops = (pool.stop(deadline_s) for pool in self.pools.values())
        await asyncio.gather(self.decoders.stop(min(deadline_s, MEDIA_DECODER_STOP_S)), *stops)

    def counters(self) -> dict[str, dict[str, float]]:
        """Return the counters of each cache by the name of its engine."""
        counters: dict[str, dict[str, float]] = {name: {} for name in self._engine_names.values()}
        for kind, client in self._clients.items():
            kind_counters = {f"{kind}_{name}": value for name, value in client.counters().items()}
            counters[self._engine_names[kind]].update(kind_counters)
        return counters
