"""Every error as an OpenAI envelope: `{"error": {message, type, param, code}}`."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from sglang_omni.observability.refusals import get_reason, is_audited
from sglang_omni.observability.trace import current_trace
from sglang_omni.protocol.errors import (
    SCHEMA_REFUSED,
    InvalidRequest,
    OmniError,
    RateLimited,
    safe_traceback,
)

logger = logging.getLogger(__name__)

VALIDATION_CODES = {
    "missing": "missing_required_parameter",
    "extra_forbidden": "unknown_parameter",
    "json_invalid": "invalid_json",
}
# Of a message: some quote what a client sent.
MAX_MESSAGE = 1000
# What metrics and the audit log call problems that they know apart.
VALIDATION_REASONS = {"json_schema": SCHEMA_REFUSED}
HTTP_CODES = {404: "not_found", 405: "method_not_allowed"}


class ErrorBody(BaseModel):
    """What went wrong, and the request field at fault."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorEnvelope(BaseModel):
    """The body of every response that is not a success."""

    error: ErrorBody


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorEnvelope, "description": "The request cannot be served as asked"},
    "5XX": {"model": ErrorEnvelope, "description": "The server failed or is not ready"},
}


def envelope(error: OmniError) -> dict[str, Any]:
    """The JSON form of an error."""
    message, param = error.message[:MAX_MESSAGE], error.param and error.param[:MAX_MESSAGE]
    body = ErrorBody(message=message, type=error.type, param=param, code=error.code)
    return ErrorEnvelope(error=body).model_dump()


def public_error(error: Exception) -> OmniError:
    """What the caller may know of an error. An unforeseen one is logged, not shown."""
    if isinstance(error, OmniError):
        note_refusal(error)
        return error
    logger.error("unforeseen error in a request: %s", safe_traceback(error))
    logger.debug("its message", exc_info=error)
    return OmniError("internal error; the server's log has the details")


def note_refusal(error: OmniError) -> None:
    """Have the request at work leave an entry in the audit log, if `error` is worth one."""
    trace = current_trace()
    if trace is not None and trace.refusal is None and is_audited(error):
        trace.refusal = error.status, get_reason(error)


def error_response(error: OmniError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The HTTP response for an error."""
    note_refusal(error)
    return JSONResponse(envelope(error), error.status, {**_retry_after(error), **(headers or {})})


def _retry_after(error: OmniError) -> dict[str, str]:
    """The headers that say when to come again: in whole seconds, as HTTP has it, and in
    milliseconds, as OpenAI's clients prefer it; or that it would be useless."""
    if error.retry_after_s is not None:
        milliseconds = math.ceil(1000 * error.retry_after_s)
        return {
            "Retry-After": str(math.ceil(error.retry_after_s)),
            "retry-after-ms": str(milliseconds),
        }
    return {"x-should-retry": "false"} if isinstance(error, RateLimited) else {}


def invalid_body(problems: Sequence[Any]) -> InvalidRequest:
    """The first of pydantic's problems; its place becomes a dotted path such as `stop.0`."""
    problem = problems[0]
    if problem["type"] == "json_invalid":
        # The location of malformed JSON is an offset into the body, not a field.
        path, reason = "", f"the body is not valid JSON: {problem['ctx']['error']}"
    else:
        path, reason = ".".join(map(str, _place(problem))), _reason(problem)
    error = InvalidRequest(f"{path}: {reason}" if path else reason, param=path or None)
    error.code = VALIDATION_CODES.get(problem["type"], InvalidRequest.code)
    error.reason = VALIDATION_REASONS.get(problem["type"])
    return error


def _reason(problem: Any) -> str:
    """What is wrong, in words for whoever wrote the body; pydantic's own name Python's types."""
    whole = len(problem["loc"]) == 1
    match problem["type"]:
        case "extra_forbidden":
            return "unknown field"
        case "missing" if whole:
            return "the body is empty; send a JSON object"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "the body must be a JSON object" if whole else "must be a JSON object"
    return str(problem["msg"])


def _place(problem: Any) -> list[int | str]:
    """Where in the body a problem is: pydantic's location, less the type of an object of several
    types, which it puts in front of that object's fields."""
    place = list(problem["loc"][1:])
    if problem["type"].startswith("union_tag"):
        return [*place, "type"]
    if len(place) > 4 and place[0] == "messages" and place[2] == "content":
        del place[4]
    elif len(place) > 1 and place[0] in ("response_format", "tool_choice"):
        del place[1]
    return place


def http_error(problem: HTTPException, request: Request) -> InvalidRequest:
    """An error of the web framework itself: an unknown route, a wrong method, an odd body."""
    where = f"{request.method} {request.url.path}"
    error = InvalidRequest(f"{problem.detail}: {where}")
    error.status = problem.status_code
    error.code = HTTP_CODES.get(problem.status_code, InvalidRequest.code)
    return error


def install(app: FastAPI) -> None:
    """Make `app` answer every foreseen error with the envelope."""

    @app.exception_handler(OmniError)
    async def _omni(request: Request, error: OmniError) -> JSONResponse:
        return error_response(error)

    @app.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(invalid_body(error.errors()))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        return error_response(http_error(error, request), error.headers)
