"""Every route that answers GET answers HEAD: same status and headers, no body."""

import re

import httpx
import pytest

from sglang_omni.entrypoints.cli.reference import create_documented_app, list_routes
from tests.entrypoints.http.fake import Served

# Values for the parameters of paths, so that something is there.
VALUES = {
    "/v1/models/{model_id:path}": "/v1/models/org/ming",
    "/docs/{name}": "/docs/start.js",
    "/playground/{name}": "/playground/main.js",
    "/v1/requests/{request_id}": None,
}
GET_ROUTES = sorted(
    {
        path
        for name, _ in list_routes(create_documented_app())
        for method, _, path in [name.strip("`").partition(" ")]
        if method == "GET"
    }
    | {"/openapi.json"}
)
# What differs between two answers to the same request.
CHANGING = {"x-request-id", "date"}
# Times and counts are in these, so that their length may change.
CHANGING_LENGTH = {"/metrics", "/v1/loads", "/get_load"}


def headers_of(reply: httpx.Response, path: str) -> dict[str, str]:
    changing = CHANGING | ({"content-length"} if path in CHANGING_LENGTH else set())
    return {name: value for name, value in reply.headers.items() if name not in changing}


@pytest.fixture
def server(drawing_server: Served) -> Served:
    return drawing_server


@pytest.mark.parametrize("route", GET_ROUTES)
def test_head_is_get_without_a_body(http: httpx.Client, route: str) -> None:
    path = VALUES.get(route, route)
    if path is None:
        path = "/v1/requests/" + http.get("/v1/models").headers["x-request-id"]
    if route == "/v1/images/files/{name}":
        body = {"prompt": "a mill", "response_format": "url"}
        (item,) = http.post("/v1/images/generations", json=body).json()["data"]
        path = httpx.URL(item["url"]).path
    if "{response_id}" in path:
        stored = http.post("/v1/responses", json={"input": "Hello."}).json()
        path = path.replace("{response_id}", stored["id"])
    assert not re.search(r"[{}]", path)
    got, head = http.get(path), http.head(path)
    assert head.content == b""
    assert head.status_code == got.status_code
    assert got.status_code == (426 if route == "/v1/realtime" else 200)
    assert headers_of(head, route) == headers_of(got, route)
    assert head.headers["x-request-id"]
    assert int(head.headers["content-length"]) > 0
    # The connection is as good as new.
    assert http.get("/health").status_code == 200


def test_every_kind_of_route_is_among_them() -> None:
    assert {"/", "/docs", "/metrics", "/v1/models", "/v1/loads", "/version"} <= set(GET_ROUTES)
    assert len(GET_ROUTES) >= 20


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nowhere", 404), ("/v1/models/other", 404), ("/v1/requests/never", 404)],
)
def test_head_of_what_is_not_there_has_the_status_of_get(
    http: httpx.Client, path: str, status: int
) -> None:
    assert http.get(path).status_code == http.head(path).status_code == status


def test_head_of_a_route_that_only_takes_posts_is_not_allowed(http: httpx.Client) -> None:
    reply = http.head("/v1/chat/completions")
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
