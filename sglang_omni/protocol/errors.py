"""The one error vocabulary. The API maps it to HTTP once, in `api/errors.py`."""

import traceback


def safe_traceback(error: BaseException) -> str:
    """The kind of an error and where it came from, for a log: not its message, nor that of what
    caused it, since these may quote what a user sent."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    cause = error.__cause__ or error.__context__
    because = f"because of {safe_traceback(cause)}" if cause is not None else ""
    return f"{type(error).__name__}\n{frames}{because}"


# Reasons for which metrics and the audit log know a refusal, where its code is shared by others.
SCHEMA_REFUSED = "schema_refused"
MEDIA_REFUSED = "media_refused"


class OmniError(Exception):
    """An error with a place in the OpenAI envelope.

    `status` is the HTTP status, `type` and `code` are the envelope's fields, `param` names the
    request field at fault, or is None. `retry_after_s` is when to come again, None if unknown.
    `reason` is what metrics and the audit log call it where `code` says too little.
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
    """The caller asked for something that cannot be done as asked."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class InvalidJSON(InvalidRequest):
    """A body or an event is not JSON, or not such as the server parses."""

    code = "invalid_json"


class UnknownVoice(InvalidRequest):
    """The named voice is neither a preset of the checkpoint nor one that the caller has stored."""

    code = "voice_not_found"


class VoiceNotFound(InvalidRequest):
    """There is no stored voice of that id, or it is somebody else's."""

    status = 404
    code = "voice_not_found"


class ModelNotFound(InvalidRequest):
    """The request names a model that this server does not serve."""

    status = 404
    code = "model_not_found"


class ContextExceeded(InvalidRequest):
    """The prompt leaves no room for an answer in the model's context."""

    code = "context_length_exceeded"


class RequestNotFound(InvalidRequest):
    """The server does not know, or no longer knows, the request that is asked about."""

    status = 404
    code = "request_not_found"


class RequestTooLarge(InvalidRequest):
    """The body of a request is larger than the server reads."""

    status = 413
    code = "request_too_large"


class UnsupportedMediaType(InvalidRequest):
    """The body of a request is of a type that the route does not read."""

    status = 415
    code = "unsupported_media_type"


class UrlTooLong(InvalidRequest):
    """The URL of a request is longer than the server reads."""

    status = 414
    code = "url_too_long"


class HeadersTooLarge(InvalidRequest):
    """The request line and headers of a request are larger than the server reads."""

    status = 431
    code = "headers_too_large"


class RequestTimeout(InvalidRequest):
    """A request did not arrive within the time that the server waits for it."""

    status = 408
    type = "timeout_error"
    code = "request_timeout"


class Overloaded(OmniError):
    """There is no room for another request; try again after `retry_after_s` seconds."""

    status = 429
    type = "rate_limit_error"
    code = "overloaded"

    def __init__(
        self, message: str, *, param: str | None = None, retry_after_s: float = 1.0
    ) -> None:
        super().__init__(message, param=param)
        self.retry_after_s = retry_after_s


class RateLimited(OmniError):
    """A key has reached one of its limits; `type` names which, as OpenAI's errors do.

    `retry_after_s` None means that the same request would never be within the limit.
    """

    status = 429
    code = "rate_limit_exceeded"

    def __init__(self, kind: str, message: str, *, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.type, self.retry_after_s = kind, retry_after_s
        self.reason = f"rate_limit_{kind}"


class Unauthorized(InvalidRequest):
    """The request has no key, or none that this server knows."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class Forbidden(InvalidRequest):
    """Whoever asks may not ask for this."""

    status = 403
    type = "permission_error"
    code = "forbidden"


class Draining(OmniError):
    """The server is shutting down and begins nothing new; another may be up already."""

    status = 503
    code = "draining"
    retry_after_s = 1.0


class BodyCapacityReached(OmniError):
    """The server holds as many bytes of request bodies as it may."""

    status = 503
    code = "body_capacity_reached"
    retry_after_s = 5.0


class InsufficientStorage(OmniError):
    """The disk that the server stores things on is full."""

    status = 507
    code = "insufficient_storage"


class EngineUnavailable(OmniError):
    """An engine is starting, restarting or stopped."""

    status = 503
    code = "engine_unavailable"


class DeadlineExceeded(OmniError):
    """The request was not done within the time it was given."""

    status = 504
    type = "timeout_error"
    code = "deadline_exceeded"


class EngineFailed(OmniError):
    """An engine died, or reported an error, while it worked on the request."""

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
