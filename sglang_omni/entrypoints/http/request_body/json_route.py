"""JSON bodies, also from clients that do not say that they send JSON.

`curl -d` calls every body a form, and some clients name no type, or a generic one. All of these are
also what a browser sends to any server without asking it first, for whichever page tells it to. So
`AccessLayer` refuses them where a page of another site sends them, before they come here.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers, MutableHeaders

from sglang_omni.entrypoints.http.request_body.budget import HeldBody
from sglang_omni.entrypoints.http.request_body.json_parse import parse_json
from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.entrypoints.http.request_body.reader import LARGE_BODY, SMALL_BYTES
from sglang_omni.entrypoints.unicode import check_json
from sglang_omni.entrypoints.work_threads import run_off_loop
from sglang_omni.protocol.errors import UnsupportedMediaType

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
# What a body is called by those who do not say what it is.
GENERIC = frozenset({"", "application/octet-stream", "text/plain"})
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def body_type(headers: Headers) -> str:
    """Return the media type of a body in lower case, without parameters; empty if none is given."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Return whether a body of this type is declared to be JSON."""
    prefix, _, kind = media_type.partition("/")
    return prefix == "application" and (kind == "json" or kind.endswith("+json"))


class JSONRoute(APIRoute):
    """A route that takes JSON. A large body is parsed and validated beside the event loop."""

    def get_route_handler(self) -> Handler:
        """Return the route's handler behind `declare_json`."""
        handle = super().get_route_handler()
        model = getattr(self.body_field, "field_info", None)
        validator: TypeAdapter[Any] = TypeAdapter(model.annotation if model else Any)

        async def handle_json(request: Request) -> Response:
            await declare_json(request)
            if (held := large_body(request)) is None:
                return await handle(request)
            size = held.size
            value = await run_off_loop(size, _parse, held.take(), validator)
            # FastAPI looks whether there is a body, then asks for its JSON.
            request._body, request._json = b"{}", value
            del value
            try:
                return await handle(request)
            finally:
                # The request lives as long as its response.
                del request._json

        return handle_json


def large_body(request: Request) -> HeldBody | None:
    """The body of a request if it is large."""
    held: HeldBody | None = getattr(request.state, LARGE_BODY, None)
    return held


def body_size(request: Request) -> int:
    """Bytes of a large body, 0 for a small one: what is made of that costs little."""
    held = large_body(request)
    return held.size if held is not None else 0


def _parse(body: bytearray, validator: TypeAdapter[Any]) -> Any:
    """The value of a body, validated. Raises `InvalidRequest`, `RequestValidationError`."""
    value = parse_json(body)
    try:
        return validator.validate_python(value)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        raise RequestValidationError(
            [{**one, "loc": ("body", *one["loc"])} for one in problems]
        ) from None


async def declare_json(request: Request) -> None:
    """Declare the body to be JSON where it may be, so that it is parsed as such.

    Raises `UnsupportedMediaType` where it is something else, `InvalidRequest` where a text in it
    is no Unicode.
    """
    # Not `request.headers`, which would keep what it read here.
    media_type = body_type(Headers(scope=request.scope))
    if is_json(media_type):
        return
    if media_type in GENERIC or (media_type == FORM and await _begins_an_object(request)):
        MutableHeaders(scope=request.scope)["content-type"] = JSON
        # `BodyLimit` has checked what was declared to be JSON, and a large body is checked later.
        if large_body(request) is None:
            check_small_json(await request.body())
            check_json(await request.body())
        return
    raise UnsupportedMediaType(
        f"the body is of type {media_type[:100]}; send JSON with 'Content-Type: {JSON}'"
    )


async def _begins_an_object(request: Request) -> bool:
    """Return whether a body is meant to be JSON. Forms escape braces, so none begins with one."""
    held = large_body(request)
    start = await request.body() if held is None else held.data[:SMALL_BYTES]
    return start.lstrip().startswith(b"{")
