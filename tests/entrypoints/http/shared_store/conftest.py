"""A Redis, and stores of both kinds."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.entrypoints.http.shared_store.redis_server import RedisServer
from tests.entrypoints.http.shared_store.stores_under_test import (
    StoresUnderTest,
    open_redis_stores,
    use_memory_stores,
)


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis for all tests that do not stop it."""
    redis = RedisServer(tmp_path_factory.mktemp("redis"))
    redis.start()
    yield redis
    redis.kill()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that the test may stop."""
    redis = RedisServer(tmp_path)
    redis.start()
    yield redis
    redis.kill()


@pytest.fixture(params=["memory", "redis"])
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[StoresUnderTest]:
    """Empty stores of each kind."""
    if request.param == "memory":
        yield use_memory_stores()
        return
    async with open_redis_stores(request.getfixturevalue("shared_redis").url) as opened:
        yield opened
