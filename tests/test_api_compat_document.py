"""docs/api_compat.md lists the routes that there are, with the keys that they need."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sglang_omni.entrypoints.cli.reference import create_documented_app, list_routes
from sglang_omni.entrypoints.http.absent_routes import find_absent_route
from sglang_omni.entrypoints.requests.completions import MAX_PROMPT_LOGPROBS
from sglang_omni.protocol.completions import MAX_CHOICES
from tests.entrypoints.http.fake import serving
from tests.entrypoints.http.middleware.test_auth import KEY, LOCKED, bearer

DOCUMENT = (Path(__file__).parents[1] / "docs" / "api_compat.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`(?:GET|POST|DELETE|WS) .+?) \| (none|key|administrator) \|", re.MULTILINE)
LISTED = {
    route: key for routes, key in ROW.findall(DOCUMENT) for route in re.findall(r"`(.+?)`", routes)
}


@pytest.fixture(scope="module")
def locked() -> Iterator[httpx.Client]:
    with serving(LOCKED) as served, httpx.Client(base_url=served.url) as client:
        yield client


def test_every_route_is_listed_and_no_other() -> None:
    served = {name.strip("`") for name, _ in list_routes(create_documented_app())}
    assert LISTED.keys() == served | {"GET /openapi.json"}


@pytest.mark.parametrize("route", sorted(route for route in LISTED if not route.startswith("WS")))
def test_the_key_is_the_one_that_is_needed(locked: httpx.Client, route: str) -> None:
    method, _, path = route.partition(" ")
    path = re.sub(r"{.+?}", "x", path)
    assert (locked.request(method, path).status_code == 401) == (LISTED[route] != "none")
    with_key = locked.request(method, path, headers=bearer(KEY)).status_code
    assert (with_key == 401) == (LISTED[route] == "administrator")


def test_routes_that_are_called_absent_are() -> None:
    (sentence,) = re.findall(r"not served \((.+?)\)", DOCUMENT, re.DOTALL)
    paths = re.findall(r"`(/.+?)`", sentence)
    assert len(paths) >= 10
    assert all(map(find_absent_route, paths))


def test_limits_are_those_of_the_code() -> None:
    assert f"up to {MAX_CHOICES} of them" in DOCUMENT
    for tokens in (MAX_PROMPT_LOGPROBS, MAX_PROMPT_LOGPROBS // 2, MAX_PROMPT_LOGPROBS // 21):
        assert f"{tokens:,}" in DOCUMENT
