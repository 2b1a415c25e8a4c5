"""Runs commands of Redis within a time limit, and watches whether it answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from redis.asyncio import BlockingConnectionPool, Connection, Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from sglang_omni.entrypoints.http.shared_store.address import PASSWORD, URL, RedisAddress
from sglang_omni.entrypoints.http.shared_store.health import Operation, SharedStoreHealth
from sglang_omni.protocol.errors import SharedStoreUnavailable, StartupError

MAX_CONNECTIONS = 32
CHECK_INTERVAL_S = 5.0
# While Redis does not answer, nothing but this check asks it.
RETRY_INTERVAL_S = 1.0
PROBE_LIFETIME_S = 60


class RedisClient:
    """One pool of connections to Redis, and the state of the store."""

    def __init__(self, redis: Redis, timeout_s: float, key_prefix: str, health: SharedStoreHealth):
        """Take a client whose own time limits are not above `timeout_s`."""
        self.key_prefix, self._health = key_prefix, health
        # Its commands have no types.
        self._redis: Any = redis
        self._timeout_s = timeout_s
        self._running: set[asyncio.Task[Any]] = set()
        self._check_now = asyncio.Event()

    async def run(self, operation: Operation, *command: str | bytes | float) -> Any:
        """Return the reply to a command.

        A caller that is cancelled does not end the command: the next user of a connection with
        half a command or an unread reply would get the reply to another one's command.

        Raises:
            SharedStoreUnavailable: Redis does not answer, or rejects the command.
        """
        if not self._health.is_up:
            self._health.record_failure(operation)
            raise _make_unavailable()
        task = asyncio.create_task(self._execute(operation, *command))
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Its caller may be gone; an error that nobody retrieves would be logged.
            task.exception()

    async def _execute(self, operation: Operation, *command: str | bytes | float) -> Any:
        try:
            return await self._send(*command)
        except (RedisError, OSError, RuntimeError) as error:
            self._health.record_failure(operation)
            if _is_rejection(error):
                self._health.record_rejection(error)
            else:
                self._health.record_outage(error)
                self._check_now.set()
            raise _make_unavailable() from None

    async def _send(self, *command: str | bytes | float) -> Any:
        """Send a command and return its reply. Raises what the Redis client does, or OSError."""
        async with asyncio.timeout(self._timeout_s):
            try:
                return await self._redis.execute_command(*command)
            except ReadOnlyError:
                # Another server has become the primary. Look its name up again.
                await self._redis.connection_pool.disconnect(inuse_connections=False)
                raise

    async def check_start(self, shown: str) -> None:
        """Run every command that the stores use.

        Args:
            shown: The address for messages.

        Raises:
            StartupError: Redis does not answer or rejects a command; `param` names the option.
        """
        key = f"{self.key_prefix}:probe"
        try:
            await self._send("SET", key, b"1", "EX", PROBE_LIFETIME_S)
            await self._send("GETEX", key, "EX", PROBE_LIFETIME_S)
            await self._send("MGET", key)
            await self._send("GET", key)
            await self._send("DEL", key)
        except (AuthenticationError, NoPermissionError) as error:
            problem = f"Redis at {shown} rejects the user, the password, or a command on keys"
            message = f"{PASSWORD}: {problem} that begin with {self.key_prefix!r} ({error})"
            raise StartupError(message, param=PASSWORD) from None
        except ResponseError as error:
            message = f"{URL}: Redis at {shown} rejects a command; it must be 6.2 or later"
            raise StartupError(f"{message} and take writes ({error})", param=URL) from None
        except (RedisError, OSError) as error:
            reason = str(error).rstrip(".") or type(error).__name__
            message = f"{URL}: no Redis answers at {shown} ({reason}); start it or unset {URL}"
            raise StartupError(message, param=URL) from None

    async def check_repeatedly(self) -> None:
        """Check again and again whether Redis answers and takes writes. Never returns."""
        while True:
            interval_s = CHECK_INTERVAL_S if self._health.is_up else RETRY_INTERVAL_S
            with suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await self._check_now.wait()
            self._check_now.clear()
            await self._check()

    async def _check(self) -> None:
        try:
            await self._send("SET", f"{self.key_prefix}:probe", b"1", "EX", PROBE_LIFETIME_S)
        except (RedisError, OSError, RuntimeError) as error:
            if not _is_rejection(error):
                self._health.record_outage(error)
                return
            # Redis that is full still answers reads.
            self._health.record_rejection(error)
        self._health.record_answer()

    async def close(self) -> None:
        """Wait for the commands under way, and close the connections."""
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._redis.aclose()


@asynccontextmanager
async def open_client(
    address: RedisAddress, timeout_s: float, key_prefix: str, health: SharedStoreHealth
) -> AsyncGenerator[RedisClient, None]:
    """Yield a client of a Redis that answers, and close it at the end.

    Raises `StartupError`.
    """
    client = RedisClient(_make_redis(address, timeout_s), timeout_s, key_prefix, health)
    try:
        await client.check_start(address.shown)
        checking = asyncio.create_task(client.check_repeatedly())
        try:
            yield client
        finally:
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)
    finally:
        await client.close()


def _make_redis(address: RedisAddress, timeout_s: float) -> Redis:
    tls: dict[str, Any] = {}
    if address.tls is not None:
        tls = {**address.tls, "ssl_check_hostname": True}
    pool = BlockingConnectionPool(
        max_connections=MAX_CONNECTIONS,
        timeout=timeout_s,
        connection_class=Connection if address.tls is None else SSLConnection,
        host=address.host,
        port=address.port,
        db=address.database,
        username=address.username,
        password=address.password,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        # Once, for an idle connection that Redis or something between has closed.
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        **tls,
    )
    return Redis.from_pool(pool)


def _is_rejection(error: Exception) -> bool:
    """Return whether Redis answered, and would take other commands."""
    return isinstance(error, ResponseError) and not isinstance(error, ReadOnlyError)


def _make_unavailable() -> SharedStoreUnavailable:
    return SharedStoreUnavailable(
        "the store that servers share does not answer, and the request needs it; retry in 1 s"
    )
