"""Names whose servers never answer cost their own tenant time, and nobody else."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sglang_omni.media import hosts, resolver
from sglang_omni.media.fetch import fetch
from sglang_omni.media.policy import FetchPolicy
from sglang_omni.media.resolver import MAX_THREADS_PER_TENANT, RESOLVER, Resolver
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.web_server import ok, web_server


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names below .silent are never answered; returns those asked for."""
    asked: list[str] = []
    ending, system = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: str, *rest: Any, **more: Any) -> object:
        if not host.endswith(".silent"):
            return system(host, *rest, **more)
        asked.append(host)
        ending.wait(30)
        raise socket.gaierror("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(hosts, "RESOLVER", Resolver())
    yield asked
    ending.set()


async def test_names_that_are_never_answered_do_not_keep_another_tenants_waiting(
    silent: list[str],
) -> None:
    crowd = [
        asyncio.create_task(RESOLVER.resolve(f"{number}.silent", 80, "crowd"), name=str(number))
        for number in range(100)
    ]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(1), web_server() as web:
        web.answers["/"] = ok(b"picture")
        policy = FetchPolicy(private_hosts=frozenset({f"localhost:{web.port}"}))
        url = f"http://localhost:{web.port}/"
        assert await fetch(url, policy) == b"picture"
        # Others who use threads wait no longer, either.
        assert await asyncio.to_thread(lambda: 1) == 1
    for one in crowd:
        one.cancel()
    await asyncio.wait(crowd)


async def test_who_stops_waiting_makes_no_room_for_more_threads(silent: list[str]) -> None:
    policy = FetchPolicy(seconds=0.1)
    for _ in range(3):
        many = [fetch(f"http://{number}.silent/", policy) for number in range(20)]
        errors = await asyncio.gather(*many, return_exceptions=True)
        assert {type(error) for error in errors} == {InvalidRequest}
    assert len(silent) == MAX_THREADS_PER_TENANT < resolver.MAX_THREADS


async def test_a_name_of_the_hosts_file_and_old_notations_are_known() -> None:
    found = await Resolver().resolve("localhost", 80, None)
    assert set(found) <= {"127.0.0.1", "::1"}
    assert found
    assert await Resolver().resolve("0x7f000001", 80, None) == ["127.0.0.1"]
    with pytest.raises(socket.gaierror):
        await Resolver().resolve("name.invalid", 80, None)
