"""One thinker over two machines: the tokens of one, whatever happens to the other machine."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
import pytest_asyncio

from sglang_omni.config.load import load_config, to_yaml
from sglang_omni.config.tree import Config
from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.thinker.contract import ThinkerRequest
from sglang_omni.entrypoints.http.responses.text_logprobs import name_token
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.registry import family_of
from sglang_omni.protocol.errors import EngineFailed, StartupError
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.serving.thinker_config import build_thinker_spec
from tests.cluster.hosts import ADDRESS_A, Link, Machines, find, kill_all
from tests.engines.runtime.processes import eventually
from tests.models.ming.thinker.features import greedy_request
from tests.server.running import run_server
from tests.testing.golden import TINY, cases, load_case
from tests.testing.machine import PATIENCE

PORT = 20_000
TOLD_S = 15.0
RECOVERY_S = 60.0 * PATIENCE
START_S = 120.0 * PATIENCE
GREEDY = cases("thinker", "greedy_")


def options(tls: TlsFiles, **changed: object) -> dict[str, object]:
    return {
        "model_path": str(TINY),
        "device": "cpu",
        "thinker.nodes": 2,
        "thinker.dist_init_addr": f"{ADDRESS_A}:{PORT}",
        "thinker.max_total_tokens": 4096,
        "cluster.tls_ca": str(tls.ca),
        "cluster.tls_certificate": str(tls.certificate),
        "cluster.tls_key": str(tls.key),
        **changed,
    }


class Node:
    """`sgl-omni node` on the second machine."""

    def __init__(self, link: Link, tls: TlsFiles, log: Path) -> None:
        self._link, self.log = link, log
        file = log.with_name("server.yaml")
        file.write_text(to_yaml(load_config(None, options(tls))))
        command = [sys.executable, "-m", "sglang_omni", "node", "--rank", "1", "--config"]
        command.append(str(file))
        self._command = link.on_b(*command)
        self.start()

    def start(self) -> None:
        with self.log.open("a") as output:
            self.process = subprocess.Popen(
                self._command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def schedulers(self) -> list[psutil.Process]:
        """The rank's processes of SGLang, under both of their names."""
        return find(self._link, "sglang::scheduler", "spawn_main")


@pytest.fixture(scope="module")
def node(
    machines: Machines, tls: TlsFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    running = Node(machines.link, tls, tmp_path_factory.mktemp("node") / "log")
    yield running
    running.stop()
    assert running.schedulers() == []


@pytest.fixture(scope="module")
def config(tls: TlsFiles) -> Config:
    return load_config(None, options(tls))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def thinker(node: Node, config: Config) -> AsyncIterator[EngineProcess]:
    engine = EngineProcess(build_thinker_spec(config, TINY))
    await engine.start()
    yield engine
    await engine.stop()
    await eventually(lambda: node.schedulers() == [], 15)


async def answers(engine: EngineProcess, case: str) -> list[int]:
    request = greedy_request(load_case(case), MingConfig.from_pretrained(TINY))
    outputs = [output async for output in engine.submit(request)]
    return [token for output in outputs for token in output.token_ids]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_rank_that_dies_at_the_start_ends_it(node: Node, config: Config) -> None:
    engine = EngineProcess(build_thinker_spec(config, TINY))
    starting = asyncio.create_task(engine.start())
    await eventually(lambda: len(node.schedulers()) > 0, START_S)
    kill_all(node.schedulers())
    with pytest.raises(StartupError, match="thinker-node-1"):
        await asyncio.wait_for(starting, TOLD_S)
    assert engine.pid is None
    await eventually(lambda: node.schedulers() == [], 10)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_server_answers_over_two_machines(node: Node) -> None:
    """The thinker's goldens through the route that a client calls, with what `serve` starts."""
    file = node.log.with_name("server.yaml")
    chat = family_of(TINY).chat_format(TINY)
    command = ("-m", "sglang_omni", "serve", "--version", "v1", "--text-only", "--config")
    with run_server(*command, str(file), ready="/ready") as server:
        for case in map(load_case, (name for name in GREEDY if "text" in name)):
            expected = case["generated_ids"].tolist()
            body = {"model": "ming-omni", "prompt": case["input_ids"].tolist(), "temperature": 0}
            reply = httpx.post(
                f"{server.api}/completions",
                json={**body, "max_tokens": len(expected), "logprobs": 0},
                timeout=120,
            )
            assert reply.status_code == 200, reply.text
            told = reply.json()["choices"][0]["logprobs"]["tokens"]
            assert told == [
                name_token(token, lambda one: (chat.token_name(one), chat.token_bytes(one)))
                for token in expected
            ]
        assert len(node.schedulers()) >= 1
    await eventually(lambda: node.schedulers() == [], 15)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", GREEDY)
async def test_two_machines_give_the_tokens_of_one(
    thinker: EngineProcess, node: Node, case: str
) -> None:
    assert await answers(thinker, case) == load_case(case)["generated_ids"].tolist()
    assert len(node.schedulers()) >= 1


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("fault", ["scheduler", "node", "first", "link"])
async def test_what_fails_is_told_in_time_and_comes_back(
    thinker: EngineProcess, node: Node, machines: Machines, fault: str
) -> None:
    waiting = asyncio.create_task(endless(thinker))
    await eventually(lambda: thinker.health.counters.get("running", 0) > 0, 20)
    failed_at = time.monotonic()
    match fault:
        case "scheduler":
            kill_all(node.schedulers())
        case "node":
            kill_all([psutil.Process(node.process.pid)])
        case "first":
            assert thinker.pid is not None
            kill_all(psutil.Process(thinker.pid).children(recursive=True))
        case "link":
            machines.link.cut()
    with pytest.raises(EngineFailed):
        await asyncio.wait_for(waiting, TOLD_S)
    told_s = time.monotonic() - failed_at
    if fault == "link":
        await asyncio.sleep(15)
        assert node.schedulers() == []
        machines.link.restore()
    if fault == "node":
        node.start()
    restored_at = time.monotonic()
    await eventually(lambda: thinker.health.state == "ready", RECOVERY_S)
    recovery_s = time.monotonic() - restored_at
    assert await answers(thinker, GREEDY[0]) == load_case(GREEDY[0])["generated_ids"].tolist()
    print(f"{fault}: told after {told_s:.1f} s, answers again after {recovery_s:.1f} s")


async def endless(engine: EngineProcess) -> None:
    sampling = SamplingParams(max_tokens=3000, temperature=1.0)
    request = ThinkerRequest(tuple(load_case(GREEDY[0])["input_ids"].tolist()), sampling)
    async for output in engine.submit(request):
        assert not output.last
