"""All errors that callers may see. `entrypoints/http/errors.py` maps them to HTTP responses."""

import traceback


def safe_traceback(error: BaseException) -> str:
    """Return the type and the traceback of an error and its causes, without their messages.

    The messages may quote what a user sent, so they must not be logged.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    cause = error.__cause__ or error.__context__
    cause_text = f"caused by {safe_traceback(cause)}" if cause is not None else ""
    return f"{type(error).__name__}\n{frames}{cause_text}"


# Reasons in metrics and the audit log for refusals that share their code with others.
SCHEMA_REFUSED = "schema_refused"
MEDIA_REFUSED = "media_refused"


class OmniError(Exception):
    """An error in OpenAI's format.

    Attributes:
        status: HTTP status.
        type: Type of the error in OpenAI's format.
        code: Code of the error in OpenAI's format.
        param: The request field at fault, or None.
        retry_after_s: Seconds after which to retry; None if unknown.
        reason: Reason in metrics and the audit log, if `code` is not specific enough.
    """

    status = 500
    type = "server_error"
    code = "internal_error"
    retry_after_s: float | None = None
    reason: str | None = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidRequest(OmniError):
    """The request is invalid."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class InvalidJSON(InvalidRequest):
    """A body or an event is not JSON that the server can parse."""

    code = "invalid_json"


class UnknownVoice(InvalidRequest):
    """The named voice is neither a preset of the checkpoint nor stored by the caller."""

    code = "voice_not_found"


class VoiceNotFound(InvalidRequest):
    """There is no stored voice with that id, or it belongs to another caller."""

    status = 404
    code = "voice_not_found"


class ModelNotFound(InvalidRequest):
    """The request names a model that this server does not serve."""

    status = 404
    code = "model_not_found"


class ContextExceeded(InvalidRequest):
    """The prompt leaves no space for an answer in the model's context."""

    code = "context_length_exceeded"


class RequestNotFound(InvalidRequest):
    """The server does not know a request or an engine of that name."""

    status = 404
    code = "request_not_found"


class ResponseNotFound(InvalidRequest):
    """There is no stored response with that id, or it belongs to another caller."""

    status = 404
    code = "response_not_found"


class PreviousResponseNotFound(InvalidRequest):
    """The response that a conversation goes on from, or one before it, is not stored."""

    code = "previous_response_not_found"


class ItemNotFound(InvalidRequest):
    """A reference names an item that is not part of a stored response."""

    code = "item_not_found"


class ImageNotFound(InvalidRequest):
    """There is no image at that URL any more."""

    status = 404
    code = "image_not_found"


class ImagesUnavailable(InvalidRequest):
    """The server draws no images. `reason` says why, and what would draw them."""

    status = 404
    code = "images_unavailable"

    def __init__(self, model: str, reason: str | None = None) -> None:
        because = f": {reason}" if reason else ""
        super().__init__(f"{model} draws no images on this server{because}")


class RequestTooLarge(InvalidRequest):
    """The body of a request is larger than the server allows."""

    status = 413
    code = "request_too_large"


class UnsupportedMediaType(InvalidRequest):
    """The route does not support the content type of the body."""

    status = 415
    code = "unsupported_media_type"


class UrlTooLong(InvalidRequest):
    """The URL of a request is longer than the server allows."""

    status = 414
    code = "url_too_long"


class HeadersTooLarge(InvalidRequest):
    """The request line and headers of a request are larger than the server allows."""

    status = 431
    code = "headers_too_large"


class RequestTimeout(InvalidRequest):
    """A request did not arrive in time."""

    status = 408
    type = "timeout_error"
    code = "request_timeout"


class Overloaded(OmniError):
    """The server is at capacity; retry after `retry_after_s` seconds."""

    status = 429
    type = "rate_limit_error"
    code = "overloaded"

    def __init__(
        self, message: str, *, param: str | None = None, retry_after_s: float = 1.0
    ) -> None:
        super().__init__(message, param=param)
        self.retry_after_s = retry_after_s


class RateLimited(OmniError):
    """A key has reached one of its limits. As in OpenAI's errors, `type` names the limit.

    If `retry_after_s` is None, the request can never be within the limit.
    """

    status = 429
    code = "rate_limit_exceeded"

    def __init__(self, kind: str, message: str, *, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.type, self.retry_after_s = kind, retry_after_s
        self.reason = f"rate_limit_{kind}"


class Unauthorized(InvalidRequest):
    """The request has no valid API key."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class Forbidden(InvalidRequest):
    """The caller is not allowed to do this."""

    status = 403
    type = "permission_error"
    code = "forbidden"


class Draining(OmniError):
    """The server is shutting down and accepts no new work; another server may be available."""

    status = 503
    code = "draining"
    retry_after_s = 1.0


class BodyCapacityReached(OmniError):
    """The server holds the maximum number of bytes of request bodies."""

    status = 503
    code = "body_capacity_reached"
    retry_after_s = 5.0


class SharedStoreUnavailable(OmniError):
    """The store that servers share does not answer, and the request needs what is in it."""

    status = 503
    code = "shared_store_unavailable"
    retry_after_s = 1.0


class InsufficientStorage(OmniError):
    """The server's disk is full."""

    status = 507
    code = "insufficient_storage"


class EngineUnavailable(OmniError):
    """An engine is starting, restarting or stopped."""

    status = 503
    code = "engine_unavailable"


class DeadlineExceeded(OmniError):
    """The request was not completed before its deadline."""

    status = 504
    type = "timeout_error"
    code = "deadline_exceeded"


class EngineFailed(OmniError):
    """An engine exited or failed while it processed the request."""

    status = 500
    code = "engine_failed"


class StartupError(OmniError):
    """The server cannot start; the message says why and, where known, what to do."""

    code = "startup_failed"


class CheckpointError(StartupError):
    """The checkpoint is incomplete or malformed; the message names the file or tensor."""

    code = "checkpoint_error"


class ConfigError(StartupError):
    """A configuration key or value is wrong."""

    code = "config_error"
