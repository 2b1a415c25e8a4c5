"""Implements `sgl-omni reference`: prints every route, field and option as Markdown."""

import argparse
import asyncio
import inspect
import json
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute

from sglang_omni.config.options import Option, RealtimeOptions, list_options
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.app import create_app

HEAD = """# Reference

Generated from the code by `sgl-omni reference > docs/reference.md`; a test checks that it is
current. The README describes how to use the routes.
"""
Json = dict[str, Any]


def render_reference(option_name: Any) -> str:
    """Return the document. `to_flag` returns the command-line flag of an option."""
    app = create_documented_app()
    schema = app.openapi()
    parts = [HEAD, "## Routes\n", render_table(("Route", "Description"), list_routes(app))]
    parts += ["\n## Bodies and events\n", *render_bodies(schema)]
    flags = (
        (f"`{option_name(one)}`", _describe_option_type(one), _format_default(one))
        for one in list_options()
    )
    parts += [
        "\n## Options of `sgl-omni serve`\n",
        render_table(("Option", "Takes", "Default"), flags),
    ]
    return "\n".join(parts)


def create_documented_app() -> FastAPI:
    """Create the application without a server, to read its schema."""
    placeholder = SimpleNamespace(
        model="",
        realtime=RealtimeOptions(),
        max_body_bytes=0,
        draining=asyncio.Event(),
        sample_rate=0,
    )
    return create_app(cast(Backend, placeholder))


def list_routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield each route with its description."""
    for route in _iter_routes(app.routes):
        if isinstance(route, APIRoute):
            name = f"{'/'.join(sorted(route.methods or ()))} {route.path}"
        elif isinstance(route, APIWebSocketRoute):
            name = f"WS {route.path}"
        else:
            continue
        yield f"`{name}`", _to_one_line(inspect.getdoc(route.endpoint) or "")


def _iter_routes(found: Iterable[Any]) -> Iterator[Any]:
    """Yield routes, including those of included routers."""
    for route in found:
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        if inner is not None:
            yield from _iter_routes(inner.routes)
        else:
            yield route


def render_bodies(schema: Json) -> Iterator[str]:
    """Yield a table of fields for every object that a client may send."""
    responses = ("ErrorBody", "ErrorEnvelope", "HTTPValidationError", "ValidationError")
    for name, body in sorted(schema["components"]["schemas"].items()):
        if name not in responses and body.get("properties"):
            yield from _render_body(name, body)
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if form := content.get("multipart/form-data"):
                yield from _render_body(f"{method.upper()} {path} (form)", form["schema"])


def _render_body(name: str, body: Json) -> Iterator[str]:
    yield f"\n### {name}\n"
    if description := body.get("description"):
        yield f"{_to_one_line(description)}\n"
    required = set(body.get("required", ()))
    rows = (
        _render_field(field, about, field in required)
        for field, about in body["properties"].items()
    )
    yield render_table(("Field", "Takes", "Default", ""), rows)


def _render_field(name: str, about: Json, required: bool) -> tuple[str, str, str, str]:
    default = "required" if required else _format_code(about.get("default"))
    return f"`{name}`", describe_type(about), default, _get_description(about)


def _get_description(about: Json) -> str:
    """Return a field's description, or that of the first type that it may have."""
    schemas = (about, *about.get("anyOf", ()))
    return next((schema["description"] for schema in schemas if "description" in schema), "")


def describe_type(about: Json) -> str:
    """Describe in words which values a JSON schema accepts."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in about:
            return " or ".join(dict.fromkeys(describe_type(one) for one in about[key]))
    if "const" in about:
        return _format_code(about["const"])
    if "enum" in about:
        return ", ".join(map(_format_code, about["enum"]))
    if about.get("type") == "array":
        return f"list of {describe_type(about.get('items', {}))}"
    return about.get("type", "anything") + _describe_bounds(about)


def _describe_bounds(about: Json) -> str:
    names = {
        "minimum": "from",
        "exclusiveMinimum": "more than",
        "maximum": "to",
        "minLength": "at least",
        "maxLength": "at most",
    }
    found = [f"{word} {about[key]:g}" for key, word in names.items() if key in about]
    return f" {' '.join(found)}" if found else ""


def render_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Render a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_format_cell, line))} |" for line in lines) + "\n"


def _format_cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _format_code(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _to_one_line(text: str) -> str:
    return " ".join(text.split())


def _describe_option_type(option: Option) -> str:
    """Return the type of an option as text."""
    names = (str(getattr(option.type, "__origin__", option.type)), str(option.type))
    text = names[0] if "Annotated" in names[1] else names[1]
    for noise in ("<class '", "'>", "pathlib.", "typing.", "sglang_omni.config.options."):
        text = text.replace(noise, "")
    return f"`{text}`"


def _format_default(option: Option) -> str:
    value = option.default
    return "" if value in (None, (), {}) else f"`{value}`"


def print_reference(_: argparse.Namespace, option_name: Any) -> int:
    """Print the document."""
    print(render_reference(option_name), end="")
    return 0
