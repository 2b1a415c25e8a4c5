"""A server for this folder's tests to ill-treat."""

from collections.abc import Iterator

import pytest

from tests.golden import TINY
from tests.server.running import RunningServer, run_server

COMMAND = ("-m", "sglang_omni.cli", "serve", "--version", "v1", "--model-path", str(TINY))


@pytest.fixture(scope="session")
def victim() -> Iterator[RunningServer]:
    with run_server(*COMMAND, ready="/ready") as running:
        yield running
