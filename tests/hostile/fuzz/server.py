"""The server that is fuzzed, in a process of its own.

It has the real routes, connections, decoding processes and grammar checker over a backend that
needs no model. `python -m tests.hostile.fuzz.server` prints its port.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.engines.grammar_checker.checker import GrammarChecker
from sglang_omni.engines.grammar_checker.contract import GrammarSettings
from sglang_omni.engines.media_decoder.contract import MediaDecoderSettings
from sglang_omni.engines.media_decoder.pool import MediaDecoderPool
from sglang_omni.entrypoints.cli.serve import bind_socket
from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.request_body.reader import BodyRules
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server, freeze_gc, run
from sglang_omni.media.fetch import FetchPolicy, fetch_all
from sglang_omni.media.limits import MediaLimits
from sglang_omni.models.registry import family_of
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.media_preprocessor import get_pixel_budget, with_error_field
from sglang_omni.pipeline.preprocess import apply_answer_grammar
from sglang_omni.pipeline.request import ChatRequest, Event
from tests.entrypoints.http.fake import FakeBackend
from tests.media.files import RULES
from tests.testing.golden import TINY

# Short, so that a case that waits for a limit does not take long.
HTTP = HttpOptions(header_timeout=0.5, keep_alive_timeout=0.75)
BODIES = BodyRules(window_s=0.5, request_timeout_s=20.0)
REALTIME = replace(RealtimeOptions(), idle_seconds=1.0, stall_seconds=1.0)
MEDIA = MediaLimits(decode_seconds=3.0)
CHAT = family_of(TINY).chat_format(TINY)


class FuzzedBackend(FakeBackend):
    """Checks grammars and decodes media as the real server does, then echoes."""

    realtime = REALTIME

    def __init__(self) -> None:
        super().__init__()
        self.grammars = GrammarChecker(GrammarSettings(TINY))
        self.media_decoders = MediaDecoderPool(MediaDecoderSettings(MEDIA, RULES), processes=2)

    async def start(self) -> None:
        """Start the processes."""
        await asyncio.gather(self.grammars.start(), self.media_decoders.start())

    async def stop(self) -> None:
        """End them."""
        await asyncio.gather(self.grammars.stop(), self.media_decoders.stop())

    async def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        await self.grammars.check(apply_answer_grammar(request, CHAT))
        for part in request.media:
            with with_error_field(part.field):
                files = await fetch_all(part.sources, FetchPolicy())
                await self.media_decoders.decode(
                    part.kind, files, get_pixel_budget(part, RULES.image), video=part.video
                )
        async with aclosing(super().respond(request)) as events:
            async for event in events:
                yield event
        # An endless run must not keep what it was asked.
        self.requests.clear()


async def main() -> None:
    """Serve until this process is ended."""
    backend = FuzzedBackend()
    await backend.start()
    recorder = TraceRecorder(lambda: backend.sample_rate)
    app = create_app(backend, recorder=recorder, bodies=BODIES)
    server = create_web_server(
        app,
        "warning",
        1,
        access_log=False,
        limits=HTTP,
        on_refusal=recorder.record_refusal,
        log_config=None,
    )
    freeze_gc()
    with bind_socket("127.0.0.1", 0) as listener:
        print(listener.getsockname()[1], flush=True)
        try:
            await server.serve([listener])
        finally:
            await backend.stop()


if __name__ == "__main__":
    logging.basicConfig(level="WARNING")
    run(main())
