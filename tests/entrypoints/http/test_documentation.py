"""`/docs` and its schema: what is taken, answered and asked for, with examples that work."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.http.documentation.routes import FOLDER
from sglang_omni.entrypoints.http.middleware.auth import Access
from tests.entrypoints.http.fake import FakeBackend, Served, serving
from tests.entrypoints.http.middleware.test_auth import ADMIN, KEY, LOCKED, bearer, keys
from tests.testing.family import CAPABILITIES

ROOT = Path(__file__).parents[3]
LINK = re.compile(r'(?:src|href)="(.+?)"')


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with serving(LOCKED) as served:
        yield served


@pytest.fixture
def server(drawing_server: Served) -> Served:
    return drawing_server


@pytest.fixture
def schema(http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/openapi.json").json()
    return found


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each."""
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def media_types(operation: dict[str, Any], status: int = 200) -> set[str]:
    return set(operation["responses"][str(status)]["content"])


def test_the_page_and_its_files_are_open_and_name_no_other_host(locked: Served) -> None:
    with httpx.Client(base_url=locked.url) as http:
        page = http.get("/docs")
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        links = LINK.findall(page.text)
        assert len(links) >= 4
        for link in links:
            assert http.get(f"/{link}").status_code == 200, link
        assert "//" not in "".join(links)


@pytest.mark.parametrize("path", ["/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js"])
def test_the_page_may_ask_this_server_alone(http: httpx.Client, path: str) -> None:
    reply = http.get(path)
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"https?:|\*", policy)
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/docs/no.js", "/docs/..%2froutes.py", "/redoc"])
def test_nothing_else_is_served(http: httpx.Client, path: str) -> None:
    assert http.get(path, follow_redirects=False).status_code == 404


def test_every_file_is_installed() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = about["tool"]["setuptools"]["package-data"][
        "sglang_omni.entrypoints.http.documentation"
    ]
    installed = {path for pattern in patterns for path in FOLDER.parent.glob(pattern)}
    assert installed == set(FOLDER.iterdir())


def test_the_schema_names_the_model_of_the_checkpoint() -> None:
    backend = FakeBackend()
    backend.capabilities = replace(CAPABILITIES, name="Small")
    with serving(backend=backend) as served:
        about = httpx.get(f"{served.url}/openapi.json").json()["info"]
    assert about["description"].startswith("Small: chat with ")


def test_the_schema_describes_what_is_taken(schema: dict[str, Any]) -> None:
    assert {"/v1/chat/completions", "/v1/audio/speech", "/ready", "/"} <= schema["paths"].keys()
    speech = schema["components"]["schemas"]["SpeechBody"]
    assert speech["additionalProperties"] is False
    formats = ["wav", "pcm", "mp3", "opus", "aac", "flac"]
    assert speech["properties"]["response_format"]["enum"] == formats
    content = schema["components"]["schemas"]["ChatMessage"]["properties"]["content"]
    assert [form["type"] for form in content["anyOf"]] == ["string", "array"]
    answers = schema["paths"]["/v1/audio/speech"]["post"]["responses"]
    assert "422" not in answers
    assert answers["4XX"]["content"]["application/json"]["schema"]["$ref"].endswith("ErrorEnvelope")


@pytest.mark.parametrize(
    ("method", "path", "documented"),
    [
        (
            "post",
            "/v1/audio/speech",
            {
                *("audio/wav", "audio/pcm", "audio/mpeg", "audio/ogg", "audio/aac", "audio/flac"),
                *("application/json", "text/event-stream"),
            },
        ),
        ("post", "/v1/chat/completions", {"application/json", "text/event-stream"}),
        ("post", "/v1/responses", {"application/json", "text/event-stream"}),
        (
            "post",
            "/v1/audio/transcriptions",
            {"application/json", "text/plain", "text/vtt", "text/event-stream"},
        ),
        ("get", "/metrics", {"text/plain; version=0.0.4; charset=utf-8"}),
        ("get", "/", {"text/html"}),
        ("get", "/v1/models", {"application/json"}),
    ],
)
def test_the_schema_has_the_media_types_of_answers(
    schema: dict[str, Any], method: str, path: str, documented: set[str]
) -> None:
    assert media_types(schema["paths"][path][method]) == documented


def test_every_get_route_answers_in_the_media_type_that_is_documented(
    http: httpx.Client, schema: dict[str, Any]
) -> None:
    asked = 0
    for method, path, operation in operations(schema):
        if method == "GET" and "{" not in path and path != "/v1/realtime":
            sent = http.get(path).headers["content-type"]
            assert {sent, sent.partition(";")[0]} & media_types(operation), path
            asked += 1
    assert asked >= 6


def test_every_example_is_answered_in_a_documented_media_type(
    http: httpx.Client, schema: dict[str, Any]
) -> None:
    seen = set()
    for _, path, operation in operations(schema):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        for name, example in body.get("examples", {}).items():
            reply = http.post(path, json=example["value"])
            assert reply.status_code == 200, (path, name, reply.text)
            assert reply.headers["content-type"].partition(";")[0] in media_types(operation)
            seen.add(path)
        assert "examples" in body or not body, path
    audio = ("/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/normalize")
    text = ("/v1/chat/completions", "/v1/completions", "/v1/tokenize", "/v1/detokenize")
    images = ("/v1/images/generations", "/v1/images/edits")
    assert seen == {"/v1/responses", *text, *audio, *images}


def test_examples_name_the_model_that_is_served(schema: dict[str, Any]) -> None:
    form = schema["paths"]["/v1/audio/transcriptions"]["post"]["requestBody"]["content"]
    fields = form["multipart/form-data"]["schema"]["properties"]
    assert fields["model"]["example"] == FakeBackend.model


@pytest.mark.parametrize(
    ("access", "schemes"),
    [
        (Access(), set()),
        (Access(keys(KEY)), {"api_key"}),
        (Access(admin_keys=keys(ADMIN)), {"admin_api_key"}),
        (LOCKED, {"api_key", "admin_api_key"}),
    ],
)
def test_operations_want_a_key_in_the_schema_exactly_where_the_server_asks_for_one(
    access: Access, schemes: set[str]
) -> None:
    with serving(access) as served, httpx.Client(base_url=served.url) as http:
        schema = http.get("/openapi.json").json()
        described = schema["components"].get("securitySchemes", {})
        assert set(described) == schemes
        assert all(
            one["type"] == "http" and one["scheme"] == "bearer" for one in described.values()
        )
        for method, path, operation in operations(schema):
            address = re.sub(r"{.+?}", "x", path)
            refused = http.request(method, address).status_code == 401
            assert refused == ("security" in operation), (method, path)
            for name in [name for one in operation.get("security", ()) for name in one]:
                allowed = {"api_key": KEY, "admin_api_key": ADMIN}[name]
                reply = http.request(method, address, headers=bearer(allowed))
                assert reply.status_code not in (401, 403), (method, path)
