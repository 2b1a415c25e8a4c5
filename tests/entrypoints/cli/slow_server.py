"""`sgl-omni serve` without engines, for the tests of its end.

Run it with `python -m`, a port, a drain time-out, perhaps with a comma and a delay of the shutdown,
and, for a web server that cannot serve, "broken".
Every answer takes WORDS * PAUSE_S seconds.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any

from sglang_omni.config.load import load_config
from sglang_omni.entrypoints.cli.serve import _run, bind_socket
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.transport.uvicorn_server import run
from sglang_omni.pipeline.request import Event, Finished, TextDelta, Usage
from sglang_omni.protocol.errors import EngineUnavailable
from tests.entrypoints.http.fake import FakeBackend

WORDS, PAUSE_S = 20, 0.1


class SlowServer(FakeBackend):
    """Fails what is in flight when it is stopped, as engines do."""

    def __init__(self, port: str, drain_timeout: str) -> None:
        super().__init__()
        timeout, _, delay = drain_timeout.partition(",")
        options = {"port": port, "drain_timeout": timeout, "shutdown_delay": delay or "0"}
        self.config = load_config(None, options)
        self.processes: dict[str, Any] = {}
        self.script = self._speak
        self._stopped = False

    async def start(self) -> None:
        await asyncio.sleep(0)

    async def stop(self, deadline_s: float = 10.0) -> None:
        self._stopped = True
        # Long enough for a second signal to cut it short.
        await asyncio.sleep(min(deadline_s, 1.0))

    def leave(self) -> None:
        self.ready = False

    async def _speak(self, request: Any) -> AsyncGenerator[Event, None]:
        for number in range(WORDS):
            await asyncio.sleep(PAUSE_S)
            if self._stopped:
                raise EngineUnavailable("the thinker is stopping")
            yield TextDelta(f"{number} ")
        yield Finished("stop", Usage())


if __name__ == "__main__":
    with bind_socket("127.0.0.1", int(sys.argv[1])) as listener:
        server: Any = SlowServer(*sys.argv[1:3])
        options = {"ssl_certfile": __file__} if sys.argv[3:] == ["broken"] else {}
        run(_run(server, listener, Access(), options))
