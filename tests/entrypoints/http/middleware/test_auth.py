"""Who may ask: keys over HTTP and WebSockets, administrators, foreign pages."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.api_keys import Keys, _digest
from sglang_omni.entrypoints.http.middleware.auth import (
    KEY_SUBPROTOCOL_PREFIX,
    Access,
    AuthMiddleware,
)
from tests.entrypoints.http.fake import FakeBackend, Served, serving

KEY, OTHER, ADMIN = "a-key-of-a-user", "a-key-of-another", "a-key-of-an-admin"
CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}]}
SPEECH = {"model": "org/ming", "input": "hello"}
PAGE = "https://page.example"


def keys(*values: str) -> Keys:
    return Keys(tuple(map(_digest, values)))


LOCKED = Access(keys(KEY, OTHER), keys(ADMIN), (PAGE,))


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with serving(LOCKED) as served:
        yield served


@pytest.fixture
def asked(locked: Served) -> Iterator[httpx.Client]:
    locked.backend.reset()
    with httpx.Client(base_url=locked.url, timeout=10) as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/chat/completions", CHAT),
        ("POST", "/v1/audio/speech", SPEECH),
        ("POST", "/v1/responses", {"input": "hello"}),
        ("GET", "/v1/responses/resp_1", None),
        ("GET", "/v1/models", None),
        ("GET", "/v1/audio/voices", None),
        ("GET", "/metrics", None),
        ("GET", "/v1/nowhere", None),
    ],
)
def test_every_route_but_the_open_ones_needs_a_key(
    asked: httpx.Client, locked: Served, method: str, path: str, body: Any
) -> None:
    for headers in ({}, bearer("a-key-nobody-has"), {"Authorization": KEY}):
        reply = asked.request(method, path, json=body, headers=headers)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.headers["x-request-id"]
        error = reply.json()["error"]
        assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
    assert locked.backend.requests == []
    assert asked.request(method, path, json=body, headers=bearer(KEY)).status_code in (200, 404)


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_only_owners_of_a_key_see_the_engines(asked: httpx.Client, path: str) -> None:
    assert asked.get(path).status_code == 200
    assert "engines" not in asked.get(path).json()
    assert "engines" in asked.get(path, headers=bearer(KEY)).json()
    assert "engines" in asked.get(path, headers=bearer(ADMIN)).json()


def test_a_body_is_not_read_before_the_key(asked: httpx.Client) -> None:
    huge = b"x" * (FakeBackend.max_body_bytes + 1)
    assert asked.post("/v1/audio/speech", content=huge).status_code == 401


def test_each_key_is_a_tenant_of_its_own(asked: httpx.Client, locked: Served) -> None:
    for key in (KEY, OTHER, KEY):
        asked.post("/v1/chat/completions", json=CHAT, headers=bearer(key))
    first, second, third = (request.tenant for request in locked.backend.requests)
    assert first == third
    assert second not in (None, first)
    assert KEY not in first


@pytest.mark.parametrize(
    ("access", "key", "status"),
    [
        (LOCKED, KEY, 401),
        (LOCKED, None, 401),
        (Access(keys(KEY)), KEY, 403),
        (Access(), None, 403),
        (LOCKED, ADMIN, 404),
    ],
)
async def test_admin_routes_need_the_key_of_an_administrator(
    access: Access, key: str | None, status: int
) -> None:
    assert await http_status(access, "/admin/anything", bearer(key) if key else {}) == status


def test_a_page_elsewhere_may_read_nothing_unless_it_is_named(asked: httpx.Client) -> None:
    asks = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    named = asked.options("/v1/audio/speech", headers=asks)
    assert named.headers["access-control-allow-origin"] == PAGE
    other = asked.options("/v1/audio/speech", headers={**asks, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("origins", [("*",), (PAGE,)])
def test_a_named_page_may_use_openais_client_and_no_page_a_cookie(origins: tuple[str, ...]) -> None:
    sent = "authorization,content-type,openai-beta,x-request-timeout,x-stainless-lang"
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": sent}
    evil = {"Origin": "https://evil.example", "Cookie": "session=1"}
    with serving(Access(origins=origins)) as served, httpx.Client(base_url=served.url) as http:
        named = http.options("/v1/audio/speech", headers={**asks, "Origin": PAGE})
        assert named.status_code == 200
        assert named.headers["access-control-allow-headers"] == sent
        assert named.headers["access-control-allow-origin"] == origins[0]
        for reply in (
            http.get("/v1/models", headers=evil),
            http.options("/v1/audio/speech", headers={**asks, **evil}),
            http.get("/v1/models", headers={"Origin": PAGE, "Cookie": "session=1"}),
        ):
            assert "access-control-allow-credentials" not in reply.headers
            assert "evil" not in reply.headers.get("access-control-allow-origin", "")


def test_no_page_may_read_anything_by_default(http: httpx.Client) -> None:
    reply = http.get("/v1/models", headers={"Origin": PAGE})
    assert not [name for name in reply.headers if name.startswith("access-control")]


# What a page may send to any server without asking it first.
WITHOUT_PREFLIGHT = (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/chat/completions", "/v1/audio/voices"])
@pytest.mark.parametrize("origin", [PAGE, "null", "http://127.0.0.1:1"])
@pytest.mark.parametrize("media_type", [*WITHOUT_PREFLIGHT, "application/octet-stream"])
def test_json_of_another_sites_page_is_read_only_where_it_is_called_json(
    http: httpx.Client, backend: FakeBackend, path: str, origin: str, media_type: str | None
) -> None:
    refused = send(http, media_type, Origin=origin, path=path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert "--cors-origin" in refused.json()["error"]["message"]
    assert backend.requests == []


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_page_of_this_server_and_one_that_is_named_may_leave_the_type_out(
    http: httpx.Client, asked: httpx.Client, server: Served, media_type: str | None
) -> None:
    assert send(http, media_type, Origin=server.url).status_code == 200
    named = send(asked, media_type, Origin=PAGE, **bearer(KEY))
    assert (named.status_code, named.headers["access-control-allow-origin"]) == (200, PAGE)


def send(
    http: httpx.Client, media_type: str | None, path: str = "/v1/audio/speech", **headers: str
) -> httpx.Response:
    """The reply to a request for speech whose body is called `media_type`."""
    if media_type is not None:
        headers["Content-Type"] = media_type
    content = b'{"model": "org/ming", "input": "hello"}'
    return http.post(path, content=content, headers=headers)


def subprotocols(*names: str) -> dict[str, Any]:
    return {"subprotocols": list(names)}


@pytest.mark.parametrize(
    ("access", "headers", "offered", "admitted"),
    [
        (LOCKED, {}, [], False),
        (LOCKED, bearer(KEY), [], True),
        (LOCKED, {}, ["realtime", KEY_SUBPROTOCOL_PREFIX + KEY], True),
        (LOCKED, {}, ["realtime", KEY_SUBPROTOCOL_PREFIX + "a-key-nobody-has"], False),
        (LOCKED, {**bearer(KEY), "Origin": PAGE}, [], True),
        (LOCKED, {**bearer(KEY), "Origin": "https://evil.example"}, [], False),
        (Access(), {}, [], True),
        (Access(), {"Origin": "http://here:8000"}, [], True),
        (Access(), {"Origin": "https://evil.example"}, [], False),
        (Access(origins=("*",)), {"Origin": "https://evil.example"}, [], True),
    ],
)
async def test_a_websocket_is_admitted_by_key_and_origin(
    access: Access, headers: dict[str, str], offered: list[str], admitted: bool
) -> None:
    scope = connection("websocket", "/v1/realtime", headers) | subprotocols(*offered)
    sent = await serve(access, scope)
    assert (sent[0]["type"] == "websocket.accept") == admitted
    assert not any(KEY in name for name in scope["subprotocols"])
    if not admitted:
        assert sent[0] == {"type": "websocket.close", "code": 1008, "reason": sent[0]["reason"]}


async def http_status(access: Access, path: str, headers: dict[str, str]) -> int:
    sent = await serve(access, connection("http", path, headers))
    return int(sent[0]["status"])


def connection(kind: str, path: str, headers: dict[str, str]) -> dict[str, Any]:
    pairs = {"host": "here:8000", **headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in pairs.items()]
    return {"type": kind, "method": "GET", "path": path, "headers": raw}


async def serve(access: Access, scope: dict[str, Any]) -> list[dict[str, Any]]:
    """What leaves for a connection, if the application behind has no routes."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    receive: Any = None
    await AuthMiddleware(app, access)(scope, receive, send)
    return sent


def test_an_administrator_has_an_engine_profiled(asked: httpx.Client, locked: Served) -> None:
    begun = asked.post("/admin/profile/talker/start", headers=bearer(ADMIN))
    assert begun.status_code == 202
    assert begun.json()["folder"].startswith("/profiles/talker-")
    assert asked.post("/admin/profile/talker/stop", headers=bearer(ADMIN)).status_code == 202
    assert asked.post("/admin/profile/nothing/stop", headers=bearer(ADMIN)).status_code == 404
    assert asked.post("/admin/profile/talker/start", headers=bearer(KEY)).status_code == 401
    first, second = locked.backend.profiles
    assert first is not None
    assert second is None
