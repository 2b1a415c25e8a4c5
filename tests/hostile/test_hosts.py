"""A web page that has its own name point at the loopback drives no server there."""

import http.client
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from sglang_omni.config.load import load_config
from sglang_omni.entrypoints.cli.access import read_access
from tests.entrypoints.http.fake import Served, serving

REBOUND = "rebound.example"


def access_of(**values: Any) -> Any:
    """What `sgl-omni serve` makes of its options."""
    return read_access(load_config(None, values))


@pytest.fixture(scope="module")
def private() -> Iterator[Served]:
    with serving(access_of(allowed_host=["Studio.example"])) as served:
        yield served


def status(served: Served, host: str | None, path: str = "/v1/models") -> int:
    """What a GET is answered that names `host` in its header, or has none."""
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=10)
    try:
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def websocket_status(served: Served, host: str, path: str, origin: str) -> int:
    """What a handshake is answered that a page of `origin` begins with the server called `host`."""
    url = urlsplit(served.url)
    end = socket.create_connection((url.hostname, url.port), timeout=10)
    try:
        with connect(f"ws://{host}:{url.port}{path}", sock=end, origin=Origin(origin)):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models", "/metrics", "/v1/audio/voices"])
def test_a_foreign_host_is_refused_on_every_route(private: Served, path: str) -> None:
    assert status(private, f"{REBOUND}:8000", path) == 403
    assert status(private, f"127.0.0.1.{REBOUND}", path) == 403


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/audio/speech/stream"])
def test_a_rebound_page_opens_no_websocket(private: Served, path: str) -> None:
    # For the browser it is a page of this very server: host and origin agree.
    port = urlsplit(private.url).port
    assert websocket_status(private, REBOUND, path, f"http://{REBOUND}:{port}") == 403
    assert websocket_status(private, "localhost", path, f"http://localhost:{port}") == 101


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:80", "localhost."],
)
def test_the_names_of_the_loopback_are_served(private: Served, host: str) -> None:
    assert status(private, host) == 200


def test_a_named_host_and_a_program_without_one_are_served(private: Served) -> None:
    assert status(private, "studio.example:8443") == 200
    assert status(private, None) == 200


def test_the_refusal_says_what_to_do(private: Served) -> None:
    connection = http.client.HTTPConnection(urlsplit(private.url).netloc, timeout=10)
    connection.request("GET", "/health", headers={"Host": REBOUND})
    answer = connection.getresponse().read().decode()
    connection.close()
    assert "--allowed-host" in answer
    assert REBOUND in answer


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, 403),
        ({"allowed_host": ["*"]}, 200),
        ({"host": "0.0.0.0"}, 200),
        ({"host": "0.0.0.0", "allowed_host": ["other.example"]}, 403),
        ({"api_key": "env:EDGE_TEST_KEY"}, 401),
        ({"api_key": "env:EDGE_TEST_KEY", "allowed_host": ["other.example"]}, 403),
    ],
)
def test_where_hosts_are_checked(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], expected: int
) -> None:
    monkeypatch.setenv("EDGE_TEST_KEY", "a-secret-of-ours")
    with serving(access_of(**values)) as served:
        assert status(served, REBOUND) == expected
