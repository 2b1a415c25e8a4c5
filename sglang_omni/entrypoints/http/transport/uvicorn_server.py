"""The web server: uvicorn with uvloop and httptools.

Together they halve the cost of sending a chunk of speech from the pipeline to the socket.
"""

import asyncio
import gc
import resource
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import uvicorn
import uvloop
from starlette.types import ASGIApp

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.http.transport.http_protocol import configure_protocol
from sglang_omni.entrypoints.http.transport.slow_clients import SlowClientRules
from sglang_omni.entrypoints.http.transport.websocket_protocol import BufferedWebSocket
from sglang_omni.observability.refusals import Refusal
from sglang_omni.system.malloc import use_mmap_for_large_blocks

T = TypeVar("T")

MAX_OPEN_FILES = 65_536
CHECK_INTERVAL_S = 0.5


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on uvloop and return its result.

    Raise the limit on open files first, and let freed memory return to the system.
    """
    _raise_file_limit()
    use_mmap_for_large_blocks()
    return uvloop.run(main)


def freeze_gc() -> None:
    """Exclude all current objects from garbage collection. Call it once everything is loaded.

    Objects made during startup live as long as the process. To scan them in each collection would
    delay every stream.
    """
    gc.collect()
    gc.freeze()


class QuietServer(uvicorn.Server):
    """uvicorn without its signal handlers, which `ShutdownSignals` replaces.

    It checks for shutdown and updates the Date header twice a second instead of ten times.
    """

    async def main_loop(self) -> None:
        """Run until shutdown is requested."""
        while not await self.on_tick(0):
            await asyncio.sleep(CHECK_INTERVAL_S)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not install signal handlers."""
        yield


def create_web_server(
    app: ASGIApp,
    log_level: str,
    grace_s: int,
    handle_signals: bool = True,
    slow_clients: SlowClientRules | None = None,
    frame_bytes: int = RealtimeOptions.frame_bytes,
    limits: HttpOptions | None = None,
    on_refusal: Callable[[Refusal], None] | None = None,
    **options: Any,
) -> uvicorn.Server:
    """Return a server for `app` that runs on the current event loop.

    Args:
        app: The ASGI application.
        log_level: uvicorn's log level.
        grace_s: Seconds that streams in flight may continue after shutdown is requested.
        handle_signals: Whether the server stops at Ctrl-C or SIGTERM by itself.
        slow_clients: Limits on what clients leave slow_clients.
        frame_bytes: A larger WebSocket frame closes its connection.
        limits: Limits on requests.
        on_refusal: Called for what is rejected before there is a request.
        options: Further options of uvicorn.
    """
    limits = limits or HttpOptions()
    return (uvicorn.Server if handle_signals else QuietServer)(
        uvicorn.Config(
            app,
            http=configure_protocol(
                slow_clients or SlowClientRules(), limits, on_refusal or _ignore_refusal
            ),
            ws=BufferedWebSocket,
            # Compressing base64 audio costs more time than it saves.
            ws_max_size=frame_bytes,
            ws_per_message_deflate=False,
            log_level=log_level,
            # uvicorn annotates an int, but passes the value to `call_later`, which takes a float.
            timeout_keep_alive=limits.keep_alive_timeout,  # type: ignore[arg-type]
            timeout_graceful_shutdown=grace_s,
            **options,
        )
    )


def _ignore_refusal(refusal: Refusal) -> None:
    """Do nothing with a refusal."""


def _raise_file_limit() -> None:
    """Raise the limit on open files as far as allowed, up to `MAX_OPEN_FILES`.

    Each connection uses one file; the usual limit of 1024 is too low for 1000 clients.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft < limit and soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
