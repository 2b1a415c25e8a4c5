"""Opens the stores of a server's state: in its memory, or in Redis that servers share."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.http.shared_store.address import URL, read_address
from sglang_omni.entrypoints.http.shared_store.health import SharedStoreHealth
from sglang_omni.entrypoints.http.state_stores import StateStores, build_memory_stores
from sglang_omni.observability.shared_store_metrics import SharedStoreMetrics
from sglang_omni.protocol.errors import ConfigError


@asynccontextmanager
async def open_stores(
    config: Config, registry: CollectorRegistry
) -> AsyncGenerator[StateStores, None]:
    """Yield the stores that the configuration asks for, and close them at the end.

    Args:
        config: The configuration.
        registry: Takes the metrics of a store that servers share.

    Raises:
        StartupError: Redis or its client's package is not there; `param` names the option.
    """
    options = config.shared_store
    if options.url is None:
        yield build_memory_stores(config.image)
        return
    address = read_address(options)
    try:
        from sglang_omni.entrypoints.http.shared_store.client import open_client
        from sglang_omni.entrypoints.http.shared_store.redis_stores import (
            RedisAudioTranscriptCache,
            RedisImageStore,
            RedisResponseStore,
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "redis":
            raise
        message = f"{URL} needs the Redis client: pip install 'sglang_omni[redis]'"
        raise ConfigError(message, param=URL) from error
    health = SharedStoreHealth(SharedStoreMetrics(registry))
    async with open_client(address, options.timeout_s, options.key_prefix, health) as client:
        yield StateStores(
            RedisResponseStore(client),
            RedisAudioTranscriptCache(client),
            RedisImageStore(client, config.image.url_seconds),
            health.describe,
        )
