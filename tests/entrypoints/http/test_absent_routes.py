"""A route of OpenAI that is not served is a 404 that names what there is instead."""

import httpx
import openai
import pytest

from sglang_omni.entrypoints.cli.reference import create_documented_app, list_routes
from sglang_omni.entrypoints.http.absent_routes import ABSENT_ROUTES, AbsentRoute
from tests.entrypoints.http.fake import Served

SERVED = {name.strip("`") for name, _ in list_routes(create_documented_app())}


@pytest.mark.parametrize("absent", ABSENT_ROUTES, ids=lambda absent: absent.path)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_it_says_what_there_is_instead(
    http: httpx.Client, absent: AbsentRoute, method: str
) -> None:
    reply = http.request(method, f"{absent.path}/some/thing")
    assert reply.status_code == 404
    error = reply.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "not_found")
    assert absent.reason in error["message"]
    assert all(route in error["message"] for route in absent.instead)


def test_what_is_named_instead_exists() -> None:
    assert {route for absent in ABSENT_ROUTES for route in absent.instead} <= SERVED


@pytest.fixture
def server(drawing_server: Served) -> Served:
    return drawing_server


@pytest.mark.parametrize("route", sorted(route for route in SERVED if "{" not in route))
def test_no_served_route_is_called_absent(http: httpx.Client, route: str) -> None:
    method, _, path = route.partition(" ")
    if method != "WS":
        assert http.request(method, path).status_code != 404


def test_another_path_is_just_not_found(http: httpx.Client) -> None:
    message = http.get("/v1/embeddingsx").json()["error"]["message"]
    assert message == "Not Found: GET /v1/embeddingsx"


def test_the_official_client_is_told(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="makes no embeddings") as missing:
        client.embeddings.create(model="org/ming", input="a")
    assert missing.value.code == "not_found"
    with pytest.raises(openai.NotFoundError, match="no files are stored"):
        client.files.list()
