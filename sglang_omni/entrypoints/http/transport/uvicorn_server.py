"""How the application is put on a socket: uvicorn, with an event loop and an HTTP parser in C.

Between them they halve what a chunk of speech costs on its way from the pipeline to the socket.
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
from sglang_omni.config.options import RealtimeOptions
from sglang_omni.entrypoints.http.transport.http_protocol import bounded
from sglang_omni.entrypoints.http.transport.slow_clients import SlowClientRules
from sglang_omni.entrypoints.http.transport.websocket_protocol import BufferedWebSocket
from sglang_omni.observability.refusals import Refusal
from sglang_omni.serving.malloc import use_mmap_for_large_blocks

T = TypeVar("T")

MOST_FILES = 65_536
TICK_S = 0.5


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on the server's kind of event loop, with room for many connections and
    no more memory kept than is used."""
    _raise_file_limit()
    use_mmap_for_large_blocks()
    return uvloop.run(main)


def freeze_gc() -> None:
    """Call it once everything is loaded: what there is by then lasts, and is not looked through
    again whenever Python collects garbage, which would hold up every stream."""
    gc.collect()
    gc.freeze()


class QuietServer(uvicorn.Server):
    """uvicorn without its handlers of signals: what to do at Ctrl-C is decided elsewhere.

    It looks whether it is to end, and dates its answers, twice a second instead of ten times.
    """

    async def main_loop(self) -> None:
        """Run until told to end."""
        while not await self.on_tick(0):
            await asyncio.sleep(TICK_S)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals as they are."""
        yield


def web_server(
    app: ASGIApp,
    log_level: str,
    grace_s: int,
    signals: bool = True,
    unread: SlowClientRules | None = None,
    frame_bytes: int = RealtimeOptions.frame_bytes,
    limits: HttpOptions | None = None,
    on_refusal: Callable[[Refusal], None] | None = None,
    **options: Any,
) -> uvicorn.Server:
    """A server for `app`, to be run on the running loop.

    With `signals` it ends at Ctrl-C or SIGTERM by itself. Told to end, it lets streams in flight
    go on for `grace_s` seconds. `unread` bounds what clients leave unread. A WebSocket frame of
    more than `frame_bytes` closes its connection. `limits` bound requests; `on_refusal` is told of
    what is refused before there is a request. `options` are uvicorn's.
    """
    limits = limits or HttpOptions()
    return (uvicorn.Server if signals else QuietServer)(
        uvicorn.Config(
            app,
            http=bounded(unread or SlowClientRules(), limits, on_refusal or _ignore),
            ws=BufferedWebSocket,
            # Sound in base64 is not worth the time that its compression takes.
            ws_max_size=frame_bytes,
            ws_per_message_deflate=False,
            log_level=log_level,
            # uvicorn's type says whole seconds; it hands them to `call_later` as they are.
            timeout_keep_alive=limits.keep_alive_timeout,  # type: ignore[arg-type]
            timeout_graceful_shutdown=grace_s,
            **options,
        )
    )


def _ignore(refusal: Refusal) -> None:
    """Nobody looks."""


def _raise_file_limit() -> None:
    """Open as many files as the system lets this process: a connection is one, and the usual
    1024 are too few for a thousand listeners."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < most and soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
