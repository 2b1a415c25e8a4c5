"""The servers of this folder's tests: one of the tiny checkpoint, one as users start it first."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.server.running import RunningServer, run_server, serve_options
from tests.testing.golden import TINY
from tests.testing.parallel import WORKERS


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    command = (
        "-m",
        "sglang_omni",
        "serve",
        "--version",
        "v1",
        "--model-path",
        str(TINY),
        "--voices-dir",
        str(tmp_path_factory.mktemp("voices")),
        *serve_options(),
    )
    with ExitStack() as life:
        # How long the start takes is judged.
        with WORKERS.alone():
            running = life.enter_context(run_server(*command, ready="/ready"))
        yield running


@pytest.fixture(scope="package")
def default_server() -> Iterator[RunningServer]:
    """The bundled model with default settings: what `make serve` starts."""
    command = (
        "-m",
        "sglang_omni",
        "serve",
        "--version",
        "v1",
        *serve_options(),
    )
    with run_server(*command, ready="/ready") as running:
        yield running
