"""HAProxy, smg and Ray Serve in front of several servers, with the files of `deploy/`."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.server.running import START_DEADLINE_S, free_port, wait_until
from tests.testing.machine import PATIENCE

DEPLOY = Path(__file__).parents[2] / "deploy"
PATHS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin"
NAMES = "ab"
ADMIN_KEY = "a-key-of-the-tests"
ADMIN_SOCKET = "admin.sock"
PROXY_START_S = 60 * PATIENCE
PROXY_END_S = 90 * PATIENCE


@contextmanager
def run_program(
    command: Sequence[str],
    log: Path,
    environment: dict[str, str] | None = None,
    end: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program while the body runs; end it with the signal `end`."""
    with log.open("w") as file:
        program = subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield program
    finally:
        program.send_signal(end)
        try:
            program.wait(PROXY_END_S)
        finally:
            program.kill()
            program.wait()


def wait_for(
    program: subprocess.Popen[bytes], log: Path, is_there: Callable[[], bool], seconds: float
) -> None:
    """Wait for a condition; fail with the log if the program ends before."""

    def holds() -> bool:
        assert program.poll() is None, log.read_text()[-4000:]
        try:
            return is_there()
        except httpx.HTTPError:
            return False

    wait_until(holds, seconds, f"{log.stem} is ready")


def write_haproxy(folder: Path, port: int, servers: Sequence[str]) -> Path:
    """Write the file of `deploy/` with other addresses."""
    text = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
    changes = {
        "bind :8080": f"bind 127.0.0.1:{port}",
        "/run/haproxy/admin.sock": str(folder / ADMIN_SOCKET),
        # Only root can become another user.
        "    user haproxy\n    group haproxy\n": "",
        "127.0.0.1:8000": servers[0].removeprefix("http://"),
        "127.0.0.1:8001": servers[1].removeprefix("http://"),
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / "haproxy.cfg"
    file.write_text(text)
    return file


@contextmanager
def run_haproxy(servers: Sequence[str], folder: Path) -> Iterator[str]:
    """Run HAProxy before two servers, and yield its URL once it asks both of them."""
    haproxy = shutil.which("haproxy", path=PATHS)
    if haproxy is None:
        pytest.skip("there is no haproxy here")
    port = free_port()
    url, log = f"http://127.0.0.1:{port}", folder / "haproxy.log"
    command = [haproxy, "-f", str(write_haproxy(folder, port, servers))]

    def asks_all() -> bool:
        reached = (
            httpx.get(f"{url}/ready", headers={"Cookie": f"omni_server={name}"}) for name in NAMES
        )
        return [one.headers.get("x-served-by") for one in reached] == list(NAMES)

    with run_program(command, log) as proxy:
        wait_for(proxy, log, asks_all, PROXY_START_S)
        yield url


@contextmanager
def run_smg(servers: Sequence[str], folder: Path) -> Iterator[str]:
    """Run smg before servers, and yield its URL once it asks all of them."""
    pytest.importorskip("smg", reason="ci/stage.sh deploy installs it")
    port = free_port()
    url, log = f"http://127.0.0.1:{port}", folder / "smg.log"
    environment = {
        "PORT": str(port),
        "METRICS_PORT": str(free_port()),
        "PYTHON": sys.executable,
        "SMG_ADMIN_KEY": ADMIN_KEY,
    }

    def asks_all() -> bool:
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        workers = httpx.get(f"{url}/workers", headers=headers).json()["workers"]
        healthy = sorted(one["url"] for one in workers if one["is_healthy"] and one["models"])
        return healthy == sorted(servers)

    with run_program(["sh", str(DEPLOY / "smg" / "smg.sh"), *servers], log, environment) as router:
        wait_for(router, log, asks_all, START_DEADLINE_S)
        yield url


def write_ray_application(folder: Path, port: int, options: str) -> Path:
    """Write the file of `deploy/` for two servers without GPUs."""
    config = yaml.safe_load((DEPLOY / "ray_serve" / "omni_serve.yaml").read_text())
    config["http_options"] = {"host": "127.0.0.1", "port": port}
    (application,) = config["applications"]
    application["args"] |= {"gpus": 0, "options": options}
    file = folder / "omni_serve.yaml"
    file.write_text(yaml.safe_dump(config))
    return file


@contextmanager
def run_ray_serve(folder: Path, options: str) -> Iterator[str]:
    """Run a Ray cluster of one node with two servers, and yield the URL of its proxy."""
    pytest.importorskip("ray.serve", reason="ci/stage.sh ray_serve installs it")
    port, cluster_port = free_port(), free_port()
    url, cluster = f"http://127.0.0.1:{port}", f"127.0.0.1:{cluster_port}"
    # Ray keeps a token there, which every later start would ask for; and it ends processes of a
    # machine whose memory is nearly full, whoever fills it.
    environment = {
        "HOME": str(folder),
        "RAY_memory_monitor_refresh_ms": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Replicas import the application by its name.
        "PYTHONPATH": os.pathsep.join([str(DEPLOY / "ray_serve"), *sys.path[1:]]),
    }

    def is_deployed() -> bool:
        assert "failed with exception" not in log.read_text(), log.read_text()[-8000:]
        return httpx.get(f"{url}/ready").status_code == 200

    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    ray += ["--node-ip-address", "127.0.0.1", "--port", str(cluster_port), "--num-cpus", "4"]
    ray += ["--include-dashboard", "false", "--disable-usage-stats"]
    # Other clusters on this machine may have Ray's usual ports.
    ray += ["--min-worker-port", "0", "--max-worker-port", "0"]
    ray += ["--ray-client-server-port", str(free_port())]
    ray += ["--dashboard-agent-listen-port", str(free_port())]
    file = write_ray_application(folder, port, options)
    run = [sys.executable, "-m", "ray.serve.scripts", "run", "--address", cluster, str(file)]
    ray_log, log = folder / "ray.log", folder / "serve.log"
    with (
        # The paths of Ray's sockets have at most 107 characters.
        tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as temp_dir,
        run_program([*ray, "--temp-dir", temp_dir], ray_log, environment) as node,
    ):
        wait_for(node, ray_log, lambda: "Ray runtime started" in ray_log.read_text(), PROXY_START_S)
        with run_program(run, log, environment, signal.SIGINT) as application:
            wait_for(application, log, is_deployed, 2 * START_DEADLINE_S)
            yield url
