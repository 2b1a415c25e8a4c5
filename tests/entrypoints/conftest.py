"""The server with a scripted backend, and clients of it."""

from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.entrypoints.http.fake import DrawingBackend, FakeBackend, Served, serving


@pytest.fixture(scope="session")
def running_server() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def server(running_server: Served) -> Served:
    running_server.backend.reset()
    return running_server


@pytest.fixture(scope="session")
def running_drawing_server() -> Iterator[Served]:
    with serving(backend=DrawingBackend()) as served:
        yield served


@pytest.fixture
def drawing_server(running_drawing_server: Served) -> Served:
    running_drawing_server.backend.reset()
    return running_drawing_server


@pytest.fixture
def backend(server: Served) -> FakeBackend:
    return server.backend


@pytest.fixture
def http(server: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=10) as client:
        yield client


@pytest.fixture
def client(server: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=10
    ) as client:
        yield client
