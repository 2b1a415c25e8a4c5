"""Media come from where the policy says, and from nowhere else."""

import base64
import os
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.media import web as web_module
from sglang_omni.media.fetch import FetchPolicy, fetch
from sglang_omni.media.hosts import is_public
from tests.media.refusals import refused
from tests.media.web_server import WebServer, endless, ok, redirect, web_server

PUBLIC = FetchPolicy()
CERTIFICATE = Path(__file__).parent / "pictures.example.crt"


@pytest.fixture
async def web() -> AsyncIterator[WebServer]:
    """A server that only a policy made by `private` lets one ask."""
    async with web_server() as server:
        yield server


def private(web: WebServer, **options: Any) -> FetchPolicy:
    """A policy that allows a test server."""
    return FetchPolicy(private_hosts=frozenset({web.host}), **options)


def answering(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Have every name resolve to these addresses; returns the names that will be asked for."""
    names: list[str] = []

    def getaddrinfo(host: str, port: int, **__: Any) -> list[tuple[Any, ...]]:
        names.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def data_uri(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, 5 << 20])
async def test_a_data_uri_is_its_bytes(size: int) -> None:
    data = os.urandom(size)
    assert await fetch(data_uri(data), PUBLIC) == data


@pytest.mark.parametrize(
    "source",
    [
        "data:image/png,plain",
        "data:image/png;base64",
        "data:;base64,AAA",
        "data:;base64,AA=A",
        "data:;base64,AA==AAAA",
        "data:;base64,A A=",
        "data:;base64,AA-_",
        "data:;base64,%41AAA",
        "data:;base64,ÄÄÄÄ",
    ],
)
async def test_a_malformed_data_uri_is_refused(source: str) -> None:
    assert "base64" in await refused(source)


async def test_a_data_uri_has_a_limit() -> None:
    policy = FetchPolicy(file_bytes=1000)
    assert len(await fetch(data_uri(bytes(1000)), policy)) == 1000
    assert await refused(data_uri(bytes(1001)), policy) == "the medium has more than 1000 bytes"


@pytest.mark.parametrize("source", ["", "ftp://example.com/x", "picture.png", "gopher:x", "../x"])
async def test_other_sources_are_refused(source: str) -> None:
    assert "data: URI, an http(s) URL or an allowed local path" in await refused(source)


async def test_a_url_is_fetched_under_its_own_name(web: WebServer) -> None:
    web.answers["/a?b=c"] = ok(b"picture")
    assert await fetch(web.url("/a?b=c"), private(web)) == b"picture"
    assert f"host: {web.host}" in web.asked[0].lower()


async def test_the_connection_goes_to_the_address_that_was_checked(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = answering(monkeypatch, "127.0.0.1")
    web.answers["/"] = ok(b"picture")
    host = f"pictures.example:{web.port}"
    policy = FetchPolicy(private_hosts=frozenset({host}))
    assert await fetch(f"http://{host}/", policy) == b"picture"
    # Looked up once: a second answer could be another.
    assert names.count("pictures.example") == 1
    assert f"host: {host}" in web.asked[0].lower()


async def test_the_next_address_is_tried_when_one_does_not_answer(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, "127.0.0.2", "127.0.0.1")
    web.answers["/"] = ok(b"picture")
    host = f"pictures.example:{web.port}"
    policy = FetchPolicy(private_hosts=frozenset({host}))
    assert await fetch(f"http://{host}/", policy) == b"picture"


@pytest.mark.parametrize(
    ("host", "trusted"), [("pictures.example", True), ("other.example", False)]
)
async def test_tls_insists_on_the_name_though_the_connection_goes_to_the_address(
    host: str, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, "127.0.0.1")
    # The certificate is made out to pictures.example, and good for a hundred years.
    monkeypatch.setattr(web_module, "_tls", lambda: ssl.create_default_context(cafile=CERTIFICATE))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    async with web_server(context) as server:
        server.answers["/"] = ok(b"picture")
        url = f"https://{host}:{server.port}/"
        policy = FetchPolicy(private_hosts=frozenset({f"{host}:{server.port}"}))
        if trusted:
            assert await fetch(url, policy) == b"picture"
        else:
            assert "cannot be reached" in await refused(url, policy)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[ff0e::1]",
        "[2001:db8::1]",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_notation_leads_to_an_address_that_is_not_public(scheme: str, host: str) -> None:
    assert await refused(f"{scheme}://{host}/x") == (
        "the URL leads to an address that is not public"
    )


@pytest.mark.parametrize(
    "host", ["[fe80::1%25eth0]", "[::1%25lo]", "%31%32%37.0.0.1", "①.0.0.1", "0177.0.0.1"]
)
async def test_exotic_hosts_are_refused(host: str) -> None:
    message = await refused(f"http://{host}/")
    assert "not public" in message or "cannot be resolved" in message or "malformed" in message


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "answers", [("127.0.0.1",), ("93.184.216.34", "10.0.0.1"), ("::1", "93.184.216.34")]
)
async def test_one_private_answer_of_a_name_is_enough_to_refuse(
    answers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, *answers)
    message = await refused("http://pictures.example/x")
    assert message == "the URL leads to an address that is not public"
    assert not any(address in message for address in answers)


async def test_a_name_that_does_not_resolve_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert "cannot be resolved" in await refused("http://nowhere.example/")


@pytest.mark.parametrize("port", [0, 22, 25, 445, 1023])
async def test_ports_of_other_services_are_refused(port: int) -> None:
    assert await refused(f"http://1.1.1.1:{port}/") == f"media cannot be fetched from port {port}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://user:secret@1.1.1.1/", "user name or password"),
        ("http://1.1.1.1\\@127.0.0.1/", "user name or password"),
        ("http://", "has no host"),
        ("http:///x", "has no host"),
        ("http://a\tb/", "malformed"),
        ("http://[::1/", "malformed"),
        ("http://1.1.1.1:99999/", "port 99999"),
    ],
)
async def test_trick_urls_are_refused(url: str, message: str) -> None:
    assert message in await refused(url)


async def test_only_allowed_domains_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "10.0.0.1")
    policy = FetchPolicy(allowed_domains=frozenset({"one.example", ".two.example"}))
    for host in ("three.example", "a.one.example", "two.example", "xtwo.example", "1.1.1.1"):
        assert "is not allowed by this server" in await refused(f"http://{host}/", policy)
    # The list allows these; that their address is not public is another matter.
    for host in ("one.example", "ONE.example.", "a.two.example", "a.b.two.example"):
        assert "not public" in await refused(f"http://{host}/", policy)


async def test_redirects_are_followed(web: WebServer) -> None:
    web.answers |= {"/1": redirect("/2"), "/2": redirect(web.url("/3"), 308), "/3": ok(b"end")}
    assert await fetch(web.url("/1"), private(web)) == b"end"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://127.0.0.1:1/secret", "port 1"),
        ("http://127.0.0.1:9/", "port 9"),
        ("http://127.1/", "not public"),
        ("http://169.254.169.254/latest/meta-data", "not public"),
        ("//[::ffff:10.0.0.1]/", "not public"),
        ("file:///etc/passwd", "scheme http or https"),
        ("data:;base64,AAAA", "malformed"),
        ("ftp://1.1.1.1/", "scheme http or https"),
        ("http://u:p@1.1.1.1/", "user name or password"),
    ],
)
async def test_every_hop_is_checked(web: WebServer, location: str, message: str) -> None:
    web.answers["/"] = redirect(location)
    assert message in await refused(web.url("/"), private(web))
    assert len(web.asked) == 1


async def test_a_hop_to_another_private_port_is_refused(web: WebServer) -> None:
    async with web_server() as inner:
        inner.answers["/"] = ok(b"secret")
        web.answers["/"] = redirect(inner.url("/"))
        assert "not public" in await refused(web.url("/"), private(web))
        assert inner.asked == []


async def test_a_hop_must_be_to_an_allowed_domain(web: WebServer) -> None:
    web.answers["/"] = redirect("http://other.example/")
    policy = private(web, allowed_domains=frozenset({"127.0.0.1"}))
    assert "'other.example' is not allowed" in await refused(web.url("/"), policy)


async def test_a_circle_of_redirects_ends(web: WebServer) -> None:
    web.answers |= {"/a": redirect("/b"), "/b": redirect("/a")}
    message = await refused(web.url("/a"), private(web))
    assert message == "the URL redirects more than 3 times"
    assert len(web.asked) == 4


async def test_an_announced_length_beyond_the_limit_is_refused(web: WebServer) -> None:
    web.answers["/"] = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"
    assert "more than 1000 bytes" in await refused(web.url("/"), private(web, file_bytes=1000))


async def test_bytes_are_counted_as_they_come(web: WebServer) -> None:
    web.answers |= {"/": endless(50 << 20), "/1000": endless(1000), "/1001": endless(1001)}
    policy = private(web, file_bytes=1000)
    assert "more than 1000 bytes" in await refused(web.url("/"), policy)
    assert "more than 1000 bytes" in await refused(web.url("/1001"), policy)
    assert len(await fetch(web.url("/1000"), policy)) == 1000


async def test_a_compressed_answer_is_refused(web: WebServer) -> None:
    web.answers["/"] = ok(b"\x1f\x8b", "content-encoding: gzip")
    assert "sent a compressed response" in await refused(web.url("/"), private(web))


async def test_an_error_status_is_told(web: WebServer) -> None:
    web.answers["/"] = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
    assert (
        await refused(web.url("/"), private(web)) == "the medium's server responded with status 404"
    )


@pytest.mark.parametrize("answer", [b"", b"not http\r\n\r\n", ok(b"xx")[:-1]])
async def test_a_broken_answer_is_refused(web: WebServer, answer: bytes) -> None:
    web.answers["/"] = answer or b"HTTP/1.1 200"
    assert "cannot be reached or closed" in await refused(web.url("/"), private(web))


async def test_a_silent_server_has_a_deadline(web: WebServer) -> None:
    message = await refused(web.url("/silent"), private(web, seconds=0.3))
    assert message == "the medium could not be fetched within 0.3 s"


async def test_no_proxy_of_the_environment_is_asked(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    web.answers["/"] = ok(b"picture")
    assert await fetch(web.url("/"), private(web)) == b"picture"
