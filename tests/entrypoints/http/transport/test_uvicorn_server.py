"""The server the application runs in."""

import asyncio
import gc
import socket
import subprocess
import sys

import httpx
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server, freeze_gc, run
from tests.entrypoints.http.fake import FakeBackend


def test_it_answers_on_the_fast_loop_and_parser_and_keeps_the_connection() -> None:
    async def ask_twice() -> tuple[list[int], int]:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            server = create_web_server(create_app(FakeBackend()), "critical", grace_s=1)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            async with httpx.AsyncClient() as client:
                url = f"http://127.0.0.1:{listener.getsockname()[1]}/health"
                while not server.started:
                    await asyncio.sleep(0.01)
                statuses = [(await client.get(url)).status_code for _ in range(2)]
                (connection,) = server.server_state.connections
                assert isinstance(connection, HttpToolsProtocol)
                requests = server.server_state.total_requests
            server.should_exit = True
            await serving
        return statuses, requests

    assert run(ask_twice()) == ([200, 200], 2)


def test_what_is_settled_is_collected_no_more() -> None:
    before = gc.get_freeze_count()
    freeze_gc()
    assert gc.get_freeze_count() > before
    assert gc.get_count()[2] == 0


def test_it_may_hold_more_connections_than_a_shell_allows() -> None:
    """In a process of its own, whose limit can be lowered."""
    code = (
        "import resource\n"
        "from sglang_omni.entrypoints.http.transport.uvicorn_server import run\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\n"
        "async def limit(): return resource.getrlimit(resource.RLIMIT_NOFILE)[0]\n"
        "print(run(limit()))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert int(printed) > 64
