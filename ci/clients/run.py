"""Unmodified clients from PyPI against a real server on the CPU.

    python ci/clients/run.py                   # all of them
    python ci/clients/run.py livekit pipecat --record

Each client gets a virtual environment of its own, made by uv, and talks through a proxy: over the
realtime WebSocket, over HTTP (chat, speech), or both, one script for each. It has its own defaults
but for the address and the key, and asks the default model, or the tiny one, whose long answers can
be interrupted. With `--record` what it printed is kept in `transcripts/`, and what it sent where
the tests read it. Fails when a client does.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import soundfile

sys.path.insert(0, str(Path(__file__).parents[2]))
from ci.clients.media import RECORDING, WAV_VARIABLE
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
    """Packages and versions of a client, its ways, and the options of the server that it asks.

    The rest of the environment is what the packages ask for, with the interpreter of this script or
    with one of version `python`. For each way there is a script, CLIENT_WAY.py. What it sends is
    kept, unless it is in a file anyway.
    """

    packages: tuple[str, ...]
    ways: tuple[str, ...] = ("http",)
    options: tuple[str, ...] = ()
    python: str = sys.executable
    is_kept: bool = True


BOTH = ("realtime", "http")
# Some know OpenAI's voices only.
ON_TINY = ("--model-path", str(TINY), "--voice-alias", "alloy=DB30")
CLIENTS = {
    "openai": Client(("openai[realtime]==3.54.0", "numpy"), BOTH, ON_TINY),
    "agents": Client(("openai-agents==0.24.0", "websockets", "numpy"), ("realtime",), ON_TINY),
    "pipecat": Client(("pipecat-ai[openai]==1.14.0", "numpy"), BOTH, ON_TINY),
    "livekit": Client(
        ("livekit-agents==1.8.9", "livekit-plugins-openai==1.8.9", "numpy"), BOTH, ON_TINY
    ),
    "litellm": Client(("litellm==1.110.2",)),
    "langchain": Client(("langchain-openai==1.7.4",)),
    "pydantic_ai": Client(("pydantic-ai-slim[openai]==2.68.0",)),
    "instructor": Client(("instructor==1.17.0",)),
    "openai_agents": Client(("openai-agents[voice]==0.24.0",)),
    "wyoming": Client(("wyoming-openai==0.8.0",), python="3.12"),
    "programs": Client(("httpx==0.28.1",), is_kept=False),
}
SERVE = ("serve", "--version", "v1")
DEADLINE_S = 180


def environment(client: Client, folder: Path) -> Path:
    """The interpreter of a fresh virtual environment."""
    python = folder / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    create = [*uv, "venv", "--quiet", "--python", client.python, str(folder)]
    subprocess.run(create, check=True, env={**os.environ, "PATH": search_path()})
    install = [*uv, "pip", "install", "--quiet", "--python", str(python), *client.packages]
    subprocess.run(install, check=True)
    return python


def search_path() -> str:
    """Where uv looks for interpreters: pyenv's are on the path only once they are chosen."""
    chosen = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    folders = sorted(Path(chosen).glob("versions/*/bin"))
    return os.pathsep.join([os.environ["PATH"], *map(str, folders)])


async def run_client(name: str, server: RunningServer, record: bool) -> int:
    """Run the scripts of one client, and return how many failed.

    With `record`, what they did is kept.
    """
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        python = await asyncio.to_thread(environment, CLIENTS[name], Path(folder))
        wav = Path(folder) / "recording.wav"
        soundfile.write(wav, *soundfile.read(RECORDING, dtype="int16"))
        for way in CLIENTS[name].ways:
            proxy = WAYS[way].proxy(server.url)
            status, printed = await run_script(python, f"{name}_{way}", proxy, wav)
            failed += status != 0
            if record:
                keep(name, way, printed, proxy.kept)
    return failed


async def run_script(
    python: Path, script: str, proxy: HttpProxy | RealtimeProxy, wav: Path
) -> tuple[int, str]:
    """The exit status of a script, and what it printed, which is shown as well.

    `wav` is the recording that it may use.
    """
    async with proxy.listening() as url:
        process = await asyncio.create_subprocess_exec(
            str(python),
            str(HERE / f"{script}.py"),
            url,
            env={**os.environ, WAV_VARIABLE: str(wav)},
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
    TRANSCRIPTS.mkdir(exist_ok=True)
    title = f"$ python ci/clients/run.py {name}      # {', '.join(CLIENTS[name].packages)}\n"
    (TRANSCRIPTS / f"{name}_{way}.txt").write_text(title + printed, encoding="utf-8")
    if not CLIENTS[name].is_kept:
        return
    recordings = WAYS[way].recordings
    recordings.mkdir(exist_ok=True)
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
    names = given.clients or list(CLIENTS)
    groups = groupby(names, lambda name: CLIENTS[name].options)
    return sum(run_group(options, list(group), given.record) for options, group in groups)


def run_group(options: tuple[str, ...], names: list[str], record: bool) -> int:
    """Run clients on one server with these options, and return how many of the scripts failed."""
    with run_server("-m", "sglang_omni", *SERVE, *options, ready="/ready") as server:
        return sum(asyncio.run(run_client(name, server, record)) for name in names)


if __name__ == "__main__":
    sys.exit(main())
