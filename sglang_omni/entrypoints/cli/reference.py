"""Implements `sgl-omni reference`: prints every route, field and option as Markdown."""

import asyncio
import inspect
import json
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute

from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.option_list import Option, list_options
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.cli.compatibility import render_compatibility
from sglang_omni.entrypoints.cli.config_arguments import (
    describe_aliases,
    format_default,
    to_flag,
)
from sglang_omni.entrypoints.cli.markdown_table import render_table
from sglang_omni.entrypoints.http.app import create_app

HEAD = """# Reference

Generated from the code by `sgl-omni reference > docs/reference.md`; a test checks that it is
current. The guide describes how to use the routes.
"""
OPTIONS_INTRODUCTION = """On the command line a list is written `A,B` and a mapping as YAML. A
configuration file (`--config FILE`) has the same names: `--talker.slots 4` is `talker: {slots: 4}`,
and `--model-path` is `model_path`.
"""
Json = dict[str, Any]


def render_reference() -> str:
    """Return the document."""
    app = create_documented_app()
    schema = app.openapi()
    parts = [HEAD, "## Routes\n", render_table(("Route", "Description"), list_routes(app))]
    parts += ["\n## Bodies and events\n", *render_bodies(schema)]
    parts += render_compatibility()
    head = ("Option", "Takes", "Default", "Description")
    parts += ["\n## Options of `sgl-omni serve`\n", OPTIONS_INTRODUCTION]
    parts += [render_table(head, map(_render_option, list_options()))]
    return "\n".join(parts)


def create_documented_app() -> FastAPI:
    """Create the application without a server, to read its schema."""
    placeholder = SimpleNamespace(
        model="",
        capabilities=SimpleNamespace(name="", image_output=True),
        realtime=RealtimeOptions(),
        image_options=ImageOptions(),
        max_body_bytes=0,
        strict_fields=False,
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
        if name not in responses and body.get("type") == "object":
            yield from _render_body(name, body)
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if form := content.get("multipart/form-data"):
                yield from _render_body(f"{method.upper()} {path} (form)", form["schema"])
            own_schema = content.get("application/json", {}).get("schema", {})
            if "properties" in own_schema:
                yield from _render_body(f"{method.upper()} {path} (JSON)", own_schema)


def _render_body(name: str, body: Json) -> Iterator[str]:
    yield f"\n### {name}\n"
    if description := body.get("description"):
        yield f"{_to_one_line(description)}\n"
    if not body.get("properties"):
        yield "It has no fields of its own.\n"
        return
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


def _format_code(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _to_one_line(text: str) -> str:
    return " ".join(text.split())


def _render_option(option: Option) -> tuple[str, str, str, str]:
    default, aliases = format_default(option), describe_aliases(option, "`")
    return (
        f"`{to_flag(option)}`",
        option.values,
        default and f"`{default}`",
        option.description + (aliases and f" ({aliases})"),
    )


def print_reference() -> int:
    """Print the document."""
    print(render_reference(), end="")
    return 0
