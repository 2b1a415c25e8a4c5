"""Routes with JSON bodies, including bodies without a JSON content type.

`curl -d` declares every body as a form, and some clients send a generic type or none. A browser
sends such requests for any page without a CORS preflight. So `AuthMiddleware` rejects them when
they come from a page of another site, before they reach a route.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers, MutableHeaders

from sglang_omni.entrypoints.http.request_body.budget import HeldBody
from sglang_omni.entrypoints.http.request_body.ignored_fields import note_ignored_fields
from sglang_omni.entrypoints.http.request_body.json_parse import parse_json
from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.entrypoints.http.request_body.json_unicode import check_json_unicode
from sglang_omni.entrypoints.http.request_body.reader import LARGE_BODY_KEY, MAX_SMALL_BODY_BYTES
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.body import Body
from sglang_omni.protocol.compat.adapt import Adapted, adapt
from sglang_omni.protocol.compat.field_rules import FieldRules
from sglang_omni.protocol.errors import UnsupportedMediaType

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
# Types that say nothing about the content.
GENERIC_TYPES = frozenset({"", "application/octet-stream", "text/plain"})
Fields = TypeVar("Fields", bound=Body)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def get_media_type(headers: Headers) -> str:
    """Return the media type of a body in lower case, without parameters; empty if none is given."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json_type(media_type: str) -> bool:
    """Return whether a media type declares JSON."""
    prefix, _, subtype = media_type.partition("/")
    return prefix == "application" and (subtype == "json" or subtype.endswith("+json"))


class JSONRoute(APIRoute):
    """A route with a JSON body. A large body is parsed and validated in a worker thread.

    Attributes:
        field_rules: Rules for fields of other programs, which are converted before validation.
    """

    field_rules: FieldRules

    def get_route_handler(self) -> Handler:
        """Return a handler that reads the body, converts its fields, and parses a large one."""
        handle = super().get_route_handler()
        model = getattr(self.body_field, "field_info", None)
        validator: TypeAdapter[Any] = TypeAdapter(model.annotation if model else Any)

        async def handle_json(request: Request) -> Response:
            await require_json(request)
            if (held_body := get_large_body(request)) is None:
                await self._adapt_small_body(request)
                return await handle(request)
            size, body = held_body.size_bytes, held_body.take()
            adapted = await run_off_loop(
                size, _parse_and_validate, body, self.field_rules, validator
            )
            note_ignored_fields(request, adapted.ignored)
            # FastAPI checks that the body is not empty, then reads the parsed JSON.
            request._body, request._json = b"{}", adapted.fields
            del adapted, body
            try:
                return await handle(request)
            finally:
                # The request object lives until the response ends; free the value now.
                del request._json

        async def handle_and_name_fields(request: Request) -> Response:
            try:
                return await handle_json(request)
            except RequestValidationError as error:
                raise to_invalid_request(error.errors(), self.field_rules) from None

        return handle_and_name_fields

    async def _adapt_small_body(self, request: Request) -> None:
        """Convert the fields of a body. FastAPI reports one that is not JSON."""
        try:
            value = await request.json()
        except (ValueError, RecursionError):
            return
        adapted = adapt(self.field_rules, value)
        note_ignored_fields(request, adapted.ignored)
        request._json = adapted.fields


def get_large_body(request: Request) -> HeldBody | None:
    """Return the body of a request if it is large, else None."""
    held_body: HeldBody | None = getattr(request.state, LARGE_BODY_KEY, None)
    return held_body


def get_large_body_size(request: Request) -> int:
    """Return the bytes of a large body, or 0 for a small one, which is cheap to process."""
    held_body = get_large_body(request)
    return held_body.size_bytes if held_body is not None else 0


def _parse_and_validate(body: bytearray, rules: FieldRules, validator: TypeAdapter[Any]) -> Adapted:
    """Return the validated value. Raises `InvalidRequest` or `RequestValidationError`."""
    adapted = adapt(rules, parse_json(body))
    try:
        return replace(adapted, fields=validator.validate_python(adapted.fields))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        raise RequestValidationError(
            [{**detail, "loc": ("body", *detail["loc"])} for detail in errors]
        ) from None


async def read_json(request: Request, model: type[Fields], rules: FieldRules) -> Fields:
    """Return the validated body of a route that takes JSON among other types.

    Raises `InvalidRequest`, naming the field.
    """
    await require_json(request)
    held_body = get_large_body(request)
    body = bytearray(await request.body()) if held_body is None else held_body.take()
    try:
        adapted = await run_off_loop(
            len(body), _parse_and_validate, body, rules, TypeAdapter(model)
        )
    except RequestValidationError as error:
        raise to_invalid_request(error.errors(), rules) from None
    note_ignored_fields(request, adapted.ignored)
    fields: Fields = adapted.fields
    return fields


async def require_json(request: Request) -> None:
    """Set the content type to JSON if the body may be JSON, so that it is parsed as JSON.

    Raises:
        UnsupportedMediaType: The body has another type.
        InvalidRequest: A string in the body is not valid Unicode.
    """
    # `request.headers` would cache the content type that is replaced below.
    media_type = get_media_type(Headers(scope=request.scope))
    if is_json_type(media_type):
        return
    if media_type in GENERIC_TYPES or (
        media_type == FORM_TYPE and await _starts_with_brace(request)
    ):
        MutableHeaders(scope=request.scope)["content-type"] = JSON_TYPE
        # `BodyLimitMiddleware` checks only declared JSON; a large body is checked when parsed.
        if get_large_body(request) is None:
            check_small_json(await request.body())
            check_json_unicode(await request.body())
        return
    raise UnsupportedMediaType(
        f"the body is of type {media_type[:100]}; send JSON with 'Content-Type: {JSON_TYPE}'"
    )


async def _starts_with_brace(request: Request) -> bool:
    """Return whether a body starts with a brace. A form never does, for forms escape braces."""
    held_body = get_large_body(request)
    start = await request.body() if held_body is None else held_body.read(0, MAX_SMALL_BODY_BYTES)
    return start.lstrip().startswith(b"{")
