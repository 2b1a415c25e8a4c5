"""Log configuration: text or JSON lines, with the id of the request they belong to."""

import json
import logging
from datetime import UTC, datetime
from typing import Literal

from sglang_omni.observability.trace import current_trace
from sglang_omni.system.loggers import OUTPUT_LOG

LogFormat = Literal["text", "json"]

TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s%(request)s: %(message)s"
# They log download addresses, which are user data, or requests, which we log ourselves.
QUIET_LOGGERS = ("httpx", "uvicorn.access")


class RequestIdFilter(logging.Filter):
    """Adds the id of the task's request, or the name of the engine, to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes and return True."""
        trace = current_trace()
        record.request_id = trace.shown_id if trace else None
        source = trace.shown_id if trace else getattr(record, "engine", None)
        record.request = f" [{source}]" if source else ""
        return True


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object in one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time (UTC), level, logger and message, and if known request id and engine."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in ("request_id", "engine"):
            if (value := getattr(record, name, None)) is not None:
                entry[name] = value
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def set_up_logging(level: str, log_format: LogFormat) -> None:
    """Log everything to stderr in one format.

    With JSON, engine output that is shown becomes JSON lines too. As text it stays unchanged, so
    that it appears above the progress bars.
    """
    handler = logging.StreamHandler()
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(
        JsonFormatter() if log_format == "json" else logging.Formatter(TEXT_FORMAT)
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    OUTPUT_LOG.handlers = [handler] if log_format == "json" else []
    OUTPUT_LOG.setLevel(logging.INFO)
    OUTPUT_LOG.propagate = False
