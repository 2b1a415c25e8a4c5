"""nginx and Caddy in front of the default server, with the files of `deploy/`."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.server.running import RunningServer, free_port, wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"
PATHS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin"
UPLOAD_BYTES = 30 << 20


def write_nginx(folder: Path, port: int, server: str) -> list[str]:
    """Write the file with other ports. Return the command that runs the proxy."""
    text = (DEPLOY / "nginx" / "sglang-omni.conf").read_text()
    text = text.replace("listen 8080;", f"listen 127.0.0.1:{port};")
    text = text.replace("127.0.0.1:8000", server)
    places = "".join(
        f"{name}_temp_path {folder};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    file.write_text(
        f"pid {folder}/pid; daemon off; events {{}} http {{ access_log off; {places} {text} }}"
    )
    return ["nginx", "-c", str(file), "-e", str(folder / "error.log")]


def write_caddy(folder: Path, port: int, server: str) -> list[str]:
    """Write the file with other ports. Return the command that runs the proxy."""
    text = (DEPLOY / "caddy" / "Caddyfile").read_text()
    text = text.replace("\n:8080 {", f"\nhttp://127.0.0.1:{port} {{")
    file = folder / "Caddyfile"
    file.write_text("{\n\tadmin off\n}\n" + text.replace("127.0.0.1:8000", server))
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]


@contextmanager
def run_proxy(name: str, server: RunningServer, folder: Path) -> Iterator[str]:
    """Run a proxy before a server, and yield its URL."""
    port = free_port()
    write = {"nginx": write_nginx, "caddy": write_caddy}[name]
    program, *arguments = write(folder, port, server.url.removeprefix("http://"))
    path = shutil.which(program, path=PATHS)
    if path is None:
        pytest.skip(f"there is no {program} here")
    with (folder / "log").open("w") as log:
        proxy = subprocess.Popen([path, *arguments], stdout=log, stderr=subprocess.STDOUT)

    def answers() -> bool:
        assert proxy.poll() is None, (folder / "log").read_text()
        try:
            return httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(answers, 20, f"{name} answers")
        yield f"http://127.0.0.1:{port}"
    finally:
        proxy.terminate()
        proxy.wait()


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(
    request: pytest.FixtureRequest,
    default_server: RunningServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    with run_proxy(request.param, default_server, tmp_path_factory.mktemp("proxy")) as url:
        yield url


def test_an_answer_is_streamed(proxy: str) -> None:
    """The first event is there long before the last one: nothing is held back."""
    message = {"role": "user", "content": "Count from 1 to 9."}
    body = {"messages": [message], "stream": True, "modalities": ["text", "audio"]}
    arrived = []
    url = f"{proxy}/v1/chat/completions"
    with httpx.stream("POST", url, json=body, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        began = time.monotonic()
        for line in answer.iter_lines():
            if line.startswith("data: "):
                arrived.append(time.monotonic() - began)
                last = line
    assert last == "data: [DONE]"
    assert len(arrived) > 5
    assert arrived[0] < arrived[-1] / 2


def test_a_websocket_passes(proxy: str) -> None:
    url = proxy.replace("http", "ws", 1) + "/v1/realtime?model=ming-omni"
    with connect(url, max_size=None) as socket:
        socket.send(json.dumps({"type": "input_audio_buffer.clear"}))
        wanted = {"session.created", "input_audio_buffer.cleared"}
        while wanted:
            wanted.discard(json.loads(socket.recv(timeout=20))["type"])


def test_a_large_upload_reaches_the_server(proxy: str) -> None:
    files = {"file": ("clip.wav", bytes(UPLOAD_BYTES))}
    reply = httpx.post(f"{proxy}/v1/audio/transcriptions", files=files, timeout=60)
    # The server's own answer, and no proxy's: these bytes are no recording.
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "file"


def test_the_page_is_served_and_what_is_private_is_not(proxy: str) -> None:
    assert "<html" in httpx.get(f"{proxy}/").text
    assert httpx.get(f"{proxy}/v1/models").status_code == 200
    assert httpx.get(f"{proxy}/metrics").status_code == 403
    assert httpx.post(f"{proxy}/admin/reload").status_code == 403
