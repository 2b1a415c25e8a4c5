"""The Python API over a server that plays scripts."""

from collections.abc import Iterator

import pytest

from sglang_omni import Omni
from sglang_omni.entrypoints.python import async_omni
from tests.entrypoints.http.fake import FakeBackend


class FakeServer(FakeBackend):
    """A backend that plays scripts, with engines that only count."""

    def __init__(self) -> None:
        super().__init__()
        self.started = self.stopped = 0
        self.start_error: Exception | None = None

    async def start(self) -> None:
        self.started += 1
        if self.start_error:
            raise self.start_error

    async def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    server = FakeServer()
    monkeypatch.setattr(async_omni, "open_server", lambda path, options: server)
    return server


@pytest.fixture
def omni(fake: FakeServer) -> Iterator[Omni]:
    with Omni() as omni:
        yield omni
