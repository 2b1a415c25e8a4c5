"""A running image engine on the tiny checkpoint."""

from collections.abc import AsyncIterator

import pytest_asyncio

from sglang_omni.engines.image.contract import ImageSettings
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from tests.testing.golden import file_of


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def engine() -> AsyncIterator[EngineProcess]:
    settings = ImageSettings(file_of("image/tiny_image_checkpoint"), threads=1)
    factory = "sglang_omni.engines.image.worker:open_worker"
    process = EngineProcess(ProcessSpec("image", factory, settings, {"OMP_NUM_THREADS": "1"}))
    await process.start()
    yield process
    await process.stop()
