"""A server for this folder's tests to ill-treat."""

from collections.abc import Iterator

import pytest

from tests.server.running import RunningServer, run_server, serve_options
from tests.testing.golden import TINY

COMMAND = (
    "-m",
    "sglang_omni",
    "serve",
    "--version",
    "v1",
    "--model-path",
    str(TINY),
    *serve_options(),
)
ADMIN_KEY = "the-key-of-an-administrator"


@pytest.fixture(scope="session")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    profiles = ("--profile-folder", str(tmp_path_factory.mktemp("profiles")))
    keys = ("--admin-api-key", "env:ADMIN_KEY_OF_THE_VICTIM")
    variables = {"ADMIN_KEY_OF_THE_VICTIM": ADMIN_KEY}
    with run_server(*COMMAND, *profiles, *keys, ready="/ready", env=variables) as running:
        yield running
