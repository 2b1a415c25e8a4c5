"""Unmodified realtime clients from PyPI against a real server on the tiny checkpoint, on the CPU.

    python ci/clients/run.py                   # all of them
    python ci/clients/run.py livekit pipecat

Each client gets a virtual environment of its own, made by uv, and talks through a proxy. What it
printed is kept in `ci/clients/transcripts/`; what it sent in `tests/realtime/recordings/`, where
the tests read it (of the sound only the length). Fails when a client does.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.golden import TINY
from tests.server.running import RunningServer, run_server

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TRANSCRIPTS, RECORDINGS = HERE / "transcripts", ROOT / "tests" / "realtime" / "recordings"
# Package and version of each client; the rest of its environment is what it asks for.
CLIENTS = {
    "openai": ["openai[realtime]==3.54.0", "numpy"],
    "agents": ["openai-agents==0.24.0", "websockets", "numpy"],
    "pipecat": ["pipecat-ai[openai]==1.14.0", "numpy"],
    "livekit": ["livekit-agents==1.8.9", "livekit-plugins-openai==1.8.9", "numpy"],
}
DEADLINE_S = 180


def without_sound(event: Any) -> Any:
    """The event with the base64 of its sound replaced by the number of characters."""
    if isinstance(event, list):
        return [without_sound(item) for item in event]
    if not isinstance(event, dict):
        return event
    return {
        name: len(value) if name == "audio" and isinstance(value, str) else without_sound(value)
        for name, value in event.items()
    }


class Recorder:
    """A proxy that keeps what the client sends."""

    def __init__(self, server: str) -> None:
        self._server = server.replace("http", "ws", 1)
        self.events: list[Any] = []

    async def serve(self, client: ServerConnection) -> None:
        request = client.request
        assert request is not None
        named = {"OpenAI-Beta": request.headers.get("OpenAI-Beta", "")}
        headers = {name: value for name, value in named.items() if value}
        url = self._server + request.path
        async with connect(url, additional_headers=headers, max_size=None) as server:
            ways = [self._to_server(client, server), self._to_client(server, client)]
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _to_server(self, client: Any, server: Any) -> None:
        try:
            async for frame in client:
                self.events.append(without_sound(json.loads(frame)))
                await server.send(frame)
        except ConnectionClosed:
            return

    async def _to_client(self, server: Any, client: Any) -> None:
        try:
            async for frame in server:
                await client.send(frame)
        except ConnectionClosed:
            return


@asynccontextmanager
async def recording(server: RunningServer) -> AsyncIterator[tuple[Recorder, str]]:
    """A proxy in front of the server, and the address of its OpenAI routes."""
    recorder = Recorder(server.url)
    async with serve(recorder.serve, "127.0.0.1", 0, max_size=None) as listening:
        port = listening.sockets[0].getsockname()[1]
        yield recorder, f"http://127.0.0.1:{port}/v1"


def environment(packages: list[str], folder: Path) -> Path:
    """The interpreter of a fresh virtual environment."""
    python = folder / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", str(python), *packages]
    subprocess.run(install, check=True)
    return python


async def run_client(name: str, server: RunningServer) -> bool:
    """Run one client; returns whether it succeeded."""
    with tempfile.TemporaryDirectory() as folder:
        python = await asyncio.to_thread(environment, CLIENTS[name], Path(folder))
        async with recording(server) as (recorder, url):
            process = await asyncio.create_subprocess_exec(
                str(python),
                str(HERE / f"{name}_realtime.py"),
                url,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            async with asyncio.timeout(DEADLINE_S):
                output, errors = await process.communicate()
    printed = output.decode(errors="replace")
    print(printed, errors.decode()[-2000:] if process.returncode else "", sep="\n", flush=True)
    title = f"$ python ci/clients/run.py {name}      # {', '.join(CLIENTS[name])}\n"
    (TRANSCRIPTS / f"{name}.txt").write_text(title + printed, encoding="utf-8")
    lines = [json.dumps(event, ensure_ascii=True) + "\n" for event in recorder.events]
    (RECORDINGS / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return process.returncode == 0


def main() -> int:
    """The number of clients that failed."""
    for folder in (TRANSCRIPTS, RECORDINGS):
        folder.mkdir(exist_ok=True)
    command = ("-m", "sglang_omni.cli", "serve", "--version", "v1", "--model-path", str(TINY))
    with run_server(*command, ready="/ready") as server:
        results = [asyncio.run(run_client(name, server)) for name in sys.argv[1:] or CLIENTS]
    return results.count(False)


if __name__ == "__main__":
    sys.exit(main())
