"""Unmodified clients from PyPI against a real server on the tiny checkpoint, on the CPU.

    python ci/clients/run.py                   # all of them
    python ci/clients/run.py livekit pipecat --record

Each client gets a virtual environment of its own, made by uv, and talks through a proxy: over the
realtime WebSocket, over HTTP (chat, speech), or both, one script for each. With `--record` what it
printed is kept in `transcripts/`, and what it sent where the tests read it. Fails when a client
does.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.recording import HttpProxy, RealtimeProxy
from tests.server.running import RunningServer, run_server
from tests.testing.golden import TINY

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TRANSCRIPTS = HERE / "transcripts"


@dataclass(frozen=True)
class Way:
    """A way to talk to a server, and where the tests read what went along it."""

    proxy: type[HttpProxy] | type[RealtimeProxy]
    recordings: Path


WAYS = {
    "realtime": Way(RealtimeProxy, ROOT / "tests" / "entrypoints" / "realtime" / "recordings"),
    "http": Way(HttpProxy, ROOT / "tests" / "entrypoints" / "http" / "recordings"),
}


@dataclass(frozen=True)
class Client:
    """Packages and versions of a client, and its ways.

    The rest of the environment is what the packages ask for. For each way there is a script,
    CLIENT_WAY.py.
    """

    packages: tuple[str, ...]
    ways: tuple[str, ...] = ("realtime", "http")


CLIENTS = {
    "openai": Client(("openai[realtime]==3.54.0", "numpy")),
    "agents": Client(("openai-agents==0.24.0", "websockets", "numpy"), ("realtime",)),
    "pipecat": Client(("pipecat-ai[openai]==1.14.0", "numpy")),
    "livekit": Client(("livekit-agents==1.8.9", "livekit-plugins-openai==1.8.9", "numpy")),
}
# Some know OpenAI's voices only.
SERVE = ("serve", "--version", "v1", "--model-path", str(TINY), "--voice-alias", "alloy=DB30")
DEADLINE_S = 180


def environment(packages: tuple[str, ...], folder: Path) -> Path:
    """The interpreter of a fresh virtual environment."""
    python = folder / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", str(python), *packages]
    subprocess.run(install, check=True)
    return python


async def run_client(name: str, server: RunningServer, record: bool) -> int:
    """Run the scripts of one client, and return how many failed.

    With `record`, what they did is kept.
    """
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        python = await asyncio.to_thread(environment, CLIENTS[name].packages, Path(folder))
        for way in CLIENTS[name].ways:
            proxy = WAYS[way].proxy(server.url)
            status, printed = await run_script(python, f"{name}_{way}", proxy)
            failed += status != 0
            if record:
                keep(name, way, printed, proxy.kept)
    return failed


async def run_script(
    python: Path, script: str, proxy: HttpProxy | RealtimeProxy
) -> tuple[int, str]:
    """The exit status of a script, and what it printed, which is shown as well."""
    async with proxy.listening() as url:
        process = await asyncio.create_subprocess_exec(
            str(python),
            str(HERE / f"{script}.py"),
            url,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(DEADLINE_S):
            output, errors = await process.communicate()
    printed, status = output.decode(errors="replace"), process.returncode or 0
    print(f"== {script}", printed, errors.decode()[-2000:] if status else "", sep="\n", flush=True)
    return status, printed


def keep(name: str, way: str, printed: str, sent: list[dict[str, Any]]) -> None:
    """Write what a script printed and what it sent."""
    recordings = WAYS[way].recordings
    for folder in (TRANSCRIPTS, recordings):
        folder.mkdir(exist_ok=True)
    title = f"$ python ci/clients/run.py {name}      # {', '.join(CLIENTS[name].packages)}\n"
    (TRANSCRIPTS / f"{name}_{way}.txt").write_text(title + printed, encoding="utf-8")
    lines = [json.dumps(one, ensure_ascii=True) + "\n" for one in sent]
    (recordings / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def main() -> int:
    """The number of scripts that failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--record", action="store_true", help="keep transcripts and recordings")
    given = parser.parse_args()
    if unknown := set(given.clients) - set(CLIENTS):
        parser.error(f"no client {', '.join(sorted(unknown))}")
    with run_server("-m", "sglang_omni", *SERVE, ready="/ready") as server:
        names = given.clients or CLIENTS
        return sum(asyncio.run(run_client(name, server, given.record)) for name in names)


if __name__ == "__main__":
    sys.exit(main())
