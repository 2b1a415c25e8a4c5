"""`sgl-omni reference`: every route, field and option, as the code has them, in Markdown."""

import argparse
import asyncio
import inspect
import json
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute

from sglang_omni.config.options import Option, RealtimeOptions, options
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.app import create_app

HEAD = """# Reference

Made from the code by `sgl-omni reference > docs/reference.md`; a test holds the two together. What
the routes do together is told in the README.
"""
Json = dict[str, Any]


def reference(option_name: Any) -> str:
    """The whole document. `option_name` gives the flag of a path of the configuration."""
    app = documented_app()
    schema = app.openapi()
    parts = [HEAD, "## Routes\n", table(("Route", "What it does"), routes(app))]
    parts += ["\n## Bodies and events\n", *bodies(schema)]
    flags = ((f"`{option_name(one)}`", _type(one), _default(one)) for one in options())
    parts += ["\n## Options of `sgl-omni serve`\n", table(("Option", "Takes", "Default"), flags)]
    return "\n".join(parts)


def documented_app() -> FastAPI:
    """The application over no server: enough to tell what it takes."""
    nobody = SimpleNamespace(
        model="",
        realtime=RealtimeOptions(),
        max_body_bytes=0,
        draining=asyncio.Event(),
        sample_rate=0,
    )
    return create_app(cast(Backend, nobody))


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Each route with the first paragraph of its description."""
    for route in _flat(app.routes):
        if isinstance(route, APIRoute):
            name = f"{'/'.join(sorted(route.methods or ()))} {route.path}"
        elif isinstance(route, APIWebSocketRoute):
            name = f"WS {route.path}"
        else:
            continue
        yield f"`{name}`", _paragraph(inspect.getdoc(route.endpoint) or "")


def _flat(found: Iterable[Any]) -> Iterator[Any]:
    """Routes, those of included routers too."""
    for route in found:
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        if inner is not None:
            yield from _flat(inner.routes)
        else:
            yield route


def bodies(schema: Json) -> Iterator[str]:
    """A table of fields for every object that a client may send."""
    answers = ("ErrorBody", "ErrorEnvelope", "HTTPValidationError", "ValidationError")
    for name, body in sorted(schema["components"]["schemas"].items()):
        if name not in answers and body.get("properties"):
            yield from _body(name, body)
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {})
            if form := content.get("multipart/form-data"):
                yield from _body(f"{method.upper()} {path} (form)", form["schema"])


def _body(name: str, body: Json) -> Iterator[str]:
    yield f"\n### {name}\n"
    if told := body.get("description"):
        yield f"{_paragraph(told)}\n"
    required = set(body.get("required", ()))
    rows = (_field(field, about, field in required) for field, about in body["properties"].items())
    yield table(("Field", "Takes", "Default", ""), rows)


def _field(name: str, about: Json, required: bool) -> tuple[str, str, str, str]:
    default = "required" if required else _code(about.get("default"))
    return f"`{name}`", takes(about), default, _description(about)


def _description(about: Json) -> str:
    """A field's own, or that of the first of the kinds that it may be."""
    kinds = (about, *about.get("anyOf", ()))
    return next((kind["description"] for kind in kinds if "description" in kind), "")


def takes(about: Json) -> str:
    """What a JSON schema lets through, in words."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in about:
            return " or ".join(dict.fromkeys(takes(one) for one in about[key]))
    if "const" in about:
        return _code(about["const"])
    if "enum" in about:
        return ", ".join(map(_code, about["enum"]))
    if about.get("type") == "array":
        return f"list of {takes(about.get('items', {}))}"
    return about.get("type", "anything") + _bounds(about)


def _bounds(about: Json) -> str:
    names = {
        "minimum": "from",
        "exclusiveMinimum": "more than",
        "maximum": "to",
        "minLength": "at least",
        "maxLength": "at most",
    }
    found = [f"{word} {about[key]:g}" for key, word in names.items() if key in about]
    return f" {' '.join(found)}" if found else ""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _code(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _type(option: Option) -> str:
    """The type of an option as a reader names it."""
    names = (str(getattr(option.type, "__origin__", option.type)), str(option.type))
    text = names[0] if "Annotated" in names[1] else names[1]
    for noise in ("<class '", "'>", "pathlib.", "typing.", "sglang_omni.config.options."):
        text = text.replace(noise, "")
    return f"`{text}`"


def _default(option: Option) -> str:
    value = option.default
    return "" if value in (None, (), {}) else f"`{value}`"


def print_reference(_: argparse.Namespace, option_name: Any) -> int:
    """Write the document to the standard output."""
    print(reference(option_name), end="")
    return 0
