"""What the schema says beyond what the routes' signatures do: answers, examples, keys."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI

from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.paths import is_admin_path, is_public_path

Json = dict[str, Any]

EVENT_STREAM = "text/event-stream"
# What is in the body of an answer, by its media type; anything else is a file.
BODY_SCHEMAS: Mapping[str, Json] = {
    "application/json": {"type": "object"},
    "text/plain": {"type": "string"},
    EVENT_STREAM: {"type": "string", "description": "Server-sent events, each a JSON object"},
}
KEY_SCHEME, ADMIN_KEY_SCHEME = "api_key", "admin_api_key"


def document_success(description: str, *media_types: str) -> dict[int | str, Json]:
    """Document a 200 that has one of `media_types`; for `responses` of a route."""
    file = {"type": "string", "format": "binary"}
    content = {
        name: {"schema": BODY_SCHEMAS.get(name.partition(";")[0], file)} for name in media_types
    }
    return {200: {"description": description, "content": content}}


def document_examples(**bodies: Json) -> Json:
    """Document JSON bodies to try, by what each shows; for `openapi_extra` of a route."""
    shown = {name: {"summary": _make_title(name), "value": body} for name, body in bodies.items()}
    return {"requestBody": {"content": {"application/json": {"examples": shown}}}}


def _make_title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def document_keys(app: FastAPI, access: Access) -> None:
    """Let the schema of `app` say which operations ask for which key, as `access` has it."""
    make_schema = app.openapi

    def openapi() -> Json:
        schema = make_schema()
        if schemes := _build_schemes(access):
            schema["components"]["securitySchemes"] = schemes
        for path, operation in _iterate_operations(schema):
            name = _find_scheme(path)
            if name in schemes:
                operation["security"] = [{name: []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


def _build_schemes(access: Access) -> Json:
    bearer = {"type": "http", "scheme": "bearer"}
    schemes = {}
    if access.keys:
        schemes[KEY_SCHEME] = bearer | {"description": "A key of this server"}
    if access.admin_keys:
        schemes[ADMIN_KEY_SCHEME] = bearer | {"description": "The key of an administrator"}
    return schemes


def _iterate_operations(schema: Json) -> Iterator[tuple[str, Json]]:
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            yield path, operation


def _find_scheme(path: str) -> str | None:
    """Return the scheme whose key `AccessLayer` asks for on a path; None where it asks for none."""
    if is_public_path(path):
        return None
    return ADMIN_KEY_SCHEME if is_admin_path(path) else KEY_SCHEME
