"""The default server in a hardened container: read-only, no privileges, no home, no user's name.

And what it says and does when the little room that it has there is used up.
"""

import base64
import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PIL import Image, ImageDraw

from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from tests.faults.hardened import (
    TREE,
    can_be_hardened,
    hardened,
    memory_group,
    no_more_memory,
)
from tests.server.running import HTTP, RunningServer, run_server, serve_options, wait_until

pytestmark = pytest.mark.skipif(not can_be_hardened(), reason="needs root, and leave to mount")

SERVE = ("-m", "sglang_omni", "serve", "--version", "v1", *serve_options())
PROBE = ("-m", "tests.faults.hardened")
SIZES = ("32m", "16m")
RECORDING = MING_MINI / "talker" / "data" / "voices" / "alpha.flac"


@pytest.fixture(scope="module")
def group() -> Iterator[Path | None]:
    with memory_group() as group:
        yield group


@pytest.fixture(scope="module")
def server(group: Path | None) -> Iterator[RunningServer]:
    command = (*PROBE, *SIZES, sys.executable, *SERVE)
    variables = {"PYTHONPATH": str(TREE), "MEMORY_GROUP": str(group or "")}
    with run_server(*command, ready="/ready", env=variables) as running:
        yield running


def root_of(server: RunningServer) -> Path:
    """The server's own view of the file system."""
    return Path(f"/proc/{server.pid}/root")


def chat(server: RunningServer, *content: dict[str, object], **fields: object) -> httpx.Response:
    message = {"role": "user", "content": list(content)}
    body = {"model": "ming-omni", "messages": [message], "temperature": 0, **fields}
    return httpx.post(f"{server.api}/chat/completions", json=body, timeout=60)


def red_circle() -> dict[str, object]:
    picture, file = Image.new("RGB", (256, 256), "white"), io.BytesIO()
    ImageDraw.Draw(picture).ellipse((60, 60, 180, 180), fill="red")
    picture.save(file, "PNG")
    url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def sum_spoken(server: RunningServer) -> None:
    """A spoken answer, a picture and a transcription, as from any server."""
    audio = {"modalities": ["text", "audio"], "audio": {"voice": "default", "format": "wav"}}
    answer = chat(server, {"type": "text", "text": "What is 17 + 25?"}, **audio)
    assert answer.status_code == 200, (answer.text, server.printed[-6000:])
    message = answer.json()["choices"][0]["message"]
    assert "42" in (message["content"] or message["audio"]["transcript"])
    assert len(base64.b64decode(message["audio"]["data"])) > 44_100
    seen = chat(server, red_circle(), {"type": "text", "text": "What colour is the circle?"})
    assert seen.status_code == 200, (seen.text, server.printed[-6000:])
    assert seen.json()["choices"][0]["message"]["content"] == "Red."
    heard = httpx.post(
        f"{server.api}/audio/transcriptions",
        data={"model": "ming-omni"},
        files={"file": ("clip.flac", RECORDING.read_bytes())},
        timeout=60,
    )
    assert heard.status_code == 200, (heard.text, server.printed[-6000:])
    assert heard.json()["text"]


def test_it_starts_answers_speaks_sees_and_hears(server: RunningServer) -> None:
    status = Path(f"/proc/{server.pid}/status").read_text()
    assert re.search(r"^Uid:\s+61234", status, re.M)
    assert re.search(r"^CapEff:\s+0+$", status, re.M)
    assert "HOME is not a folder" in server.printed
    assert "engines keep their caches" in server.printed
    (home,) = (root_of(server) / "tmp").glob("sglang-omni-*/home")
    assert home.stat().st_mode & 0o777 == 0o700
    sum_spoken(server)


def test_it_serves_on_when_its_room_is_used_up_and_comes_back_when_there_is_some(
    server: RunningServer,
) -> None:
    fillers = [root_of(server) / place / "filler" for place in ("tmp", "dev/shm")]
    try:
        for filler in fillers:
            fill(filler)
        sum_spoken(server)
        os.kill(server.engine("thinker")["pid"], 9)
        wait_until(lambda: server.engine("thinker")["restarts"] >= 2, 60, "a restart that failed")
        refused = chat(server, {"type": "text", "text": "What is 17 + 25?"})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "engine_unavailable"
        assert "thinker" in server.printed
        assert "temporary directory" in server.printed
    finally:
        for filler in fillers:
            filler.unlink(missing_ok=True)
    wait_until(lambda: HTTP.get(f"{server.url}/ready").status_code == 200, 120, "ready again")
    sum_spoken(server)
    thinker = server.engine("thinker")
    assert thinker["error"] is None
    assert "temporary directory" in thinker["last_error"]


def test_an_engine_that_the_kernel_kills_for_memory_says_so_and_comes_back(
    server: RunningServer, group: Path | None
) -> None:
    if group is None:
        pytest.skip("needs a memory control group of version 1")
    talker = server.engine("talker")
    with no_more_memory(group, talker["pid"]):
        wait_until(lambda: server.engine("talker")["pid"] != talker["pid"], 30, "it was killed")
        asked = {"model": "ming-omni", "input": "The red car."}
        refused = httpx.post(f"{server.api}/audio/speech", json=asked, timeout=60)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "engine_unavailable"
    wait_until(lambda: HTTP.get(f"{server.url}/ready").status_code == 200, 120, "ready again")
    reason = "talker was killed by SIGKILL: out of memory (kernel OOM killer)"
    assert reason in server.printed
    assert server.engine("talker")["error"] is None
    sum_spoken(server)


def fill(path: Path) -> None:
    """Write until the file system takes no more."""
    with path.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(1 << 20))
            except OSError:
                break
    with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_too_little_room_ends_the_start_in_one_line() -> None:
    command = hardened("1m", "16m", sys.executable, *SERVE, "--port", "0")
    ended = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(TREE)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    (line,) = [one for one in ended.stderr.splitlines() if one.startswith("sgl-omni:")]
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "/tmp has" in line
    assert "need 8 MB" in line
    assert "TMPDIR" in line
