"""HTTP responses for errors, in OpenAI's format: `{"error": {message, type, param, code}}`."""

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
# Messages and field names are cut to this, because some quote what a client sent.
MAX_CHARACTERS = 1000
# Validation problems that have their own reason in metrics and the audit log.
VALIDATION_REASONS = {"json_schema": SCHEMA_REFUSED}
HTTP_CODES = {404: "not_found", 405: "method_not_allowed"}


class ErrorBody(BaseModel):
    """An error in OpenAI's format. `param` names the request field at fault, if any."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorEnvelope(BaseModel):
    """The body of every error response."""

    error: ErrorBody


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorEnvelope, "description": "The request is invalid or not allowed"},
    "5XX": {"model": ErrorEnvelope, "description": "The server failed or is not ready"},
}


def build_envelope(error: OmniError) -> dict[str, Any]:
    """Return the JSON object of an error."""
    message, param = error.message[:MAX_CHARACTERS], error.param and error.param[:MAX_CHARACTERS]
    body = ErrorBody(message=message, type=error.type, param=param, code=error.code)
    return ErrorEnvelope(error=body).model_dump()


def to_public_error(error: Exception) -> OmniError:
    """Return the error that the caller may see. An unexpected error is logged and hidden."""
    if isinstance(error, OmniError):
        record_refusal(error)
        return error
    logger.error("unexpected error in a request: %s", safe_traceback(error))
    logger.debug("the message of that error", exc_info=error)
    return OmniError("internal error; the server's log has the details")


def record_refusal(error: OmniError) -> None:
    """Record `error` in the current trace, if it belongs in the audit log."""
    trace = current_trace()
    if trace is not None and trace.refusal is None and is_audited(error):
        trace.refusal = error.status, get_reason(error)


def build_error_response(
    error: OmniError, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the HTTP response for an error."""
    record_refusal(error)
    all_headers = {**_build_retry_headers(error), **(headers or {})}
    return JSONResponse(build_envelope(error), error.status, all_headers)


def _build_retry_headers(error: OmniError) -> dict[str, str]:
    """Return the headers that say when to retry, or that a retry is useless.

    `Retry-After` is in whole seconds, as HTTP requires; `retry-after-ms` is for OpenAI's clients.
    """
    if error.retry_after_s is not None:
        milliseconds = math.ceil(1000 * error.retry_after_s)
        return {
            "Retry-After": str(math.ceil(error.retry_after_s)),
            "retry-after-ms": str(milliseconds),
        }
    return {"x-should-retry": "false"} if isinstance(error, RateLimited) else {}


def to_invalid_request(problems: Sequence[Any]) -> InvalidRequest:
    """Return the first of pydantic's problems as an error that names a path such as `stop.0`."""
    problem = problems[0]
    if problem["type"] == "json_invalid":
        # The location of invalid JSON is an offset into the body, not a field.
        path, reason = "", f"the body is not valid JSON: {problem['ctx']['error']}"
    else:
        path, reason = ".".join(map(str, _find_field_path(problem))), _describe_problem(problem)
    error = InvalidRequest(f"{path}: {reason}" if path else reason, param=path or None)
    error.code = VALIDATION_CODES.get(problem["type"], InvalidRequest.code)
    error.reason = VALIDATION_REASONS.get(problem["type"])
    return error


def _describe_problem(problem: Any) -> str:
    """Return what is wrong. Some of pydantic's messages name Python types and are replaced."""
    is_body = len(problem["loc"]) == 1
    match problem["type"]:
        case "extra_forbidden":
            return "unknown field"
        case "missing" if is_body:
            return "the body is empty; send a JSON object"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "the body must be a JSON object" if is_body else "must be a JSON object"
    return str(problem["msg"])


def _find_field_path(problem: Any) -> list[int | str]:
    """Return the location of a problem in the body.

    In a discriminated union, pydantic puts the type before the field; it is removed here.
    """
    path_parts = list(problem["loc"][1:])
    if problem["type"].startswith("union_tag"):
        return [*path_parts, "type"]
    if len(path_parts) > 4 and path_parts[0] == "messages" and path_parts[2] == "content":
        del path_parts[4]
    elif len(path_parts) > 1 and path_parts[0] in ("response_format", "tool_choice"):
        del path_parts[1]
    return path_parts


def convert_http_error(problem: HTTPException, request: Request) -> InvalidRequest:
    """Convert an error of the web framework, such as an unknown route or a wrong method."""
    error = InvalidRequest(f"{problem.detail}: {request.method} {request.url.path}")
    error.status = problem.status_code
    error.code = HTTP_CODES.get(problem.status_code, InvalidRequest.code)
    return error


def install_error_handlers(app: FastAPI) -> None:
    """Make `app` answer every known error in OpenAI's format."""

    @app.exception_handler(OmniError)
    async def handle_omni_error(request: Request, error: OmniError) -> JSONResponse:
        return build_error_response(error)

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(
        request: Request, error: RequestValidationError
    ) -> JSONResponse:
        return build_error_response(to_invalid_request(error.errors()))

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> JSONResponse:
        return build_error_response(convert_http_error(error, request), error.headers)
