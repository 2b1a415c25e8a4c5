"""HTTP responses for errors, in OpenAI's format: `{"error": {message, type, param, code}}`."""

import logging
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from sglang_omni.entrypoints.http.absent_routes import find_absent_route
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.observability.refusals import get_reason, is_audited
from sglang_omni.observability.trace import current_trace
from sglang_omni.protocol.errors import (
    InvalidRequest,
    OmniError,
    RateLimited,
    safe_traceback,
)

logger = logging.getLogger(__name__)

# Messages and field names are cut to this, because some quote what a client sent.
MAX_CHARACTERS = 1000
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


def convert_http_error(problem: HTTPException, request: Request) -> InvalidRequest:
    """Convert an error of the web framework, such as an unknown route or a wrong method."""
    message = f"{problem.detail}: {request.method} {request.url.path}"
    if problem.status_code == 404 and (absent := find_absent_route(request.url.path)):
        message += f"; {absent}"
    error = InvalidRequest(message)
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
