"""OpenAPI documentation that FastAPI cannot infer: responses, examples and keys."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI

from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.paths import is_admin_path, is_public_path

Json = dict[str, Any]

EVENT_STREAM = "text/event-stream"
# Schemas of response bodies by media type; all other types are files.
BODY_SCHEMAS: Mapping[str, Json] = {
    "application/json": {"type": "object"},
    "text/plain": {"type": "string"},
    EVENT_STREAM: {"type": "string", "description": "Server-sent events, each a JSON object"},
}
KEY_SCHEME, ADMIN_KEY_SCHEME = "api_key", "admin_api_key"


def document_success(description: str, *media_types: str) -> dict[int | str, Json]:
    """Return a route's `responses` for status 200 with one of `media_types`."""
    file = {"type": "string", "format": "binary"}
    content = {
        name: {"schema": BODY_SCHEMAS.get(name.partition(";")[0], file)} for name in media_types
    }
    return {200: {"description": description, "content": content}}


def document_examples(**bodies: Json) -> Json:
    """Return a route's `openapi_extra` with example JSON bodies, by name."""
    examples = {
        name: {"summary": _make_title(name), "value": body} for name, body in bodies.items()
    }
    return {"requestBody": {"content": {"application/json": {"examples": examples}}}}


def _make_title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def document_keys(app: FastAPI, access: Access) -> None:
    """Add to the schema of `app` which operations need which key, according to `access`."""
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
        schemes[KEY_SCHEME] = bearer | {"description": "An API key of this server"}
    if access.admin_keys:
        schemes[ADMIN_KEY_SCHEME] = bearer | {"description": "An administrator's key"}
    return schemes


def _iterate_operations(schema: Json) -> Iterator[tuple[str, Json]]:
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            yield path, operation


def _find_scheme(path: str) -> str | None:
    """Return the scheme of the key that `AuthMiddleware` requires on a path, or None."""
    if is_public_path(path):
        return None
    return ADMIN_KEY_SCHEME if is_admin_path(path) else KEY_SCHEME
