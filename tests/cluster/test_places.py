"""Places on two machines: surveyed, refused before anything starts, and shown by a server."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.engines.remote.survey import NODE_DEADLINE_S, survey_cluster
from sglang_omni.version import package_version
from tests.cluster.hosts import NETWORK, Machines, wait_for_nodes
from tests.server.running import free_port, run_server
from tests.testing.golden import TINY
from tests.testing.machine import PATIENCE

SPEECH = {"input": "The two machines share what is to be spoken here.", "response_format": "pcm"}


@pytest.fixture
def options(machines: Machines, tls: TlsFiles) -> list[str]:
    return [
        *("--model-path", str(TINY), "--cluster.ray_address", machines.address),
        *("--cluster.bind", NETWORK, "--cluster.tls_ca", str(tls.ca)),
        *("--cluster.tls_certificate", str(tls.certificate), "--cluster.tls_key", str(tls.key)),
    ]


def test_a_survey_sees_both_machines(machines: Machines, tmp_path: Path) -> None:
    started_at = time.monotonic()
    here, there = survey_cluster(machines.address, [TINY, tmp_path / "none"])
    print(f"the survey took {time.monotonic() - started_at:.1f} s")
    assert (here.name, here.is_server, here.gpus) == ("node-a", True, ())
    assert (there.name, there.is_server, there.hostname) == ("node-b", False, "host-b")
    assert [gpu.total_bytes for gpu in there.gpus] == [2 * 10**9, 24 * 10**9]
    for report in (here, there):
        assert report.machine is not None
        assert report.machine.version == package_version()
        assert report.machine.missing == (str(tmp_path / "none"),)


def test_a_machine_that_does_not_answer_ends_no_survey(machines: Machines) -> None:
    machines.link.cut()
    try:
        started_at = time.monotonic()
        reports = survey_cluster(machines.address, [])
        took_s = time.monotonic() - started_at
    finally:
        machines.link.restore()
        wait_for_nodes(machines.address, 2, 60 * PATIENCE)
    print(f"the survey took {took_s:.1f} s without the other machine: {reports[1:]}")
    assert (reports[0].name, reports[0].problem) == ("node-a", "")
    # It is unknown until Ray misses it, and then not there.
    assert all("did not answer" in report.problem for report in reports[1:])
    assert took_s < NODE_DEADLINE_S + 15 * PATIENCE


@pytest.mark.parametrize(
    ("device", "place", "reason"),
    [
        ("cpu", "node-z", "no node 'node-z'; its nodes: node-a, node-b"),
        ("cuda", "node-b:0", "node-b:0, pretended GPU 0 of 2 GB, cannot hold talker"),
        ("cuda", "node-b:0", "it fits on node-b:1"),
        ("cuda", "node-b:2", "node-b has no GPU 2; its GPUs: 0, 1"),
        ("cuda", "node-a:0", "node-a has no GPU 0; its GPUs: none"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_before_anything_starts(
    machines: Machines, options: list[str], device: str, place: str, reason: str
) -> None:
    command = [sys.executable, "-m", "sglang_omni", "serve", "--port", str(free_port())]
    command += [*options, "--device", device, "--talker.place", place]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0
    assert reason in ended.stdout + ended.stderr
    assert "starting" not in ended.stdout
    running = [" ".join(process.cmdline()) for process in machines.link.processes_of_b()]
    assert not [command for command in running if "engine_main" in command]


def test_a_server_shows_where_its_engines_are(options: list[str]) -> None:
    places = ["--talker.place", "local,node-b", "--image_encoder.place", "node-b"]
    command = ["-m", "sglang_omni", "serve", "--device", "cpu", *options, *places]
    with run_server(*command, ready="/ready") as server:
        assert "  talker on local, node-b" in server.printed
        assert "machines of the cluster: node-a (this machine), node-b" in server.printed
        status = subprocess.run(
            [sys.executable, "-m", "sglang_omni", "status", "--base-url", server.url],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ,
        ).stdout
        rows = {line.split()[0]: line.split()[1] for line in status.splitlines()[2:]}
        assert (rows["thinker"], rows["talker"]) == ("local", "local")
        assert (rows["talker-1"], rows["encoders"]) == ("node-b", "node-b")
        metrics = httpx.get(f"{server.url}/metrics").text
        assert 'sgl_omni_engine_up{engine="talker",node="node-b",replica="1"} 1.0' in metrics
        assert find_nodes(server.url) == {"", "node-b"}


def find_nodes(url: str) -> set[str]:
    """Speak four times at once. Return the machines that did, as the timelines tell."""
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda number: speak(url, number), range(4)))
    nodes = set()
    for request_id in ids:
        timeline = httpx.get(f"{url}/v1/requests/{request_id}").json()
        nodes |= {stage["node"] for stage in timeline["stages"] if stage["name"] == "talker"}
    return nodes


def speak(url: str, seed: int) -> str:
    """Have a text read aloud. Return the id of the request."""
    response = httpx.post(f"{url}/v1/audio/speech", json={**SPEECH, "seed": seed}, timeout=60)
    assert response.status_code == 200, response.text
    return response.headers["x-request-id"]
