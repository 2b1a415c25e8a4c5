"""Running engines for every test of this folder: SGLang in two set-ups, and the encoders.

The thinker runs on one rank, with the radix cache and prefill chunks so small that they cut
pictures, on two tensor-parallel ranks (gloo) without the cache, and on two ranks that share the
experts; the encoders run on one rank and on two.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.launch import build_environment as encoder_environment
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from tests.testing.golden import TINY

CHUNK = 16


def thinker(checkpoint: Path = TINY, **settings: Any) -> EngineProcess:
    chosen = ThinkerSettings(checkpoint, max_total_tokens=4096, **settings)
    factory = "sglang_omni.engines.thinker.worker:open_worker"
    return EngineProcess(
        ProcessSpec("thinker", factory, chosen, build_environment(chosen, threads=1))
    )


def encoders(ranks: int) -> EngineProcess:
    settings = EncoderSettings(TINY, tp_size=ranks, threads=1)
    factory = "sglang_omni.engines.encoder.worker:open_worker"
    variables = encoder_environment(settings, threads=1)
    return EngineProcess(ProcessSpec("encoders", factory, settings, variables))


@pytest.fixture(scope="session")
def config() -> MingConfig:
    return MingConfig.from_pretrained(TINY)


async def running(process: EngineProcess) -> AsyncIterator[EngineProcess]:
    await process.start()
    yield process
    await process.stop()


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def one_rank() -> AsyncIterator[EngineProcess]:
    async for process in running(thinker(server_args=(("chunked_prefill_size", CHUNK),))):
        yield process


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def two_ranks() -> AsyncIterator[EngineProcess]:
    async for process in running(thinker(tp_size=2, radix_cache=False)):
        yield process


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def two_expert_ranks() -> AsyncIterator[EngineProcess]:
    async for process in running(thinker(tp_size=2, ep_size=2)):
        yield process


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def encoder() -> AsyncIterator[EngineProcess]:
    async for process in running(encoders(1)):
        yield process


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def two_encoder_ranks() -> AsyncIterator[EngineProcess]:
    async for process in running(encoders(2)):
        yield process
