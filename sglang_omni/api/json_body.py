"""JSON bodies, also from clients that do not say that they send JSON.

`curl -d` calls every body a form, and some clients name no type, or a generic one. All of these are
also what a browser sends to any server without asking it first, for whichever page tells it to. So
`AccessLayer` refuses them where a page of another site sends them, before they come here.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders

from sglang_omni.api.unicode import check_json
from sglang_omni.errors import UnsupportedMediaType

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
    """A route that takes JSON."""

    def get_route_handler(self) -> Handler:
        """Return the route's handler behind `declare_json`."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            await declare_json(request)
            return await handle(request)

        return handle_json


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
        # `BodyLimit` has checked what was declared to be JSON.
        check_json(await request.body())
        return
    raise UnsupportedMediaType(
        f"the body is of type {media_type[:100]}; send JSON with 'Content-Type: {JSON}'"
    )


async def _begins_an_object(request: Request) -> bool:
    """Return whether a body is meant to be JSON. Forms escape braces, so none begins with one."""
    return (await request.body()).lstrip().startswith(b"{")
