"""Log lines: each names the request it belongs to; as text, or as one JSON object."""

import json
import logging
from datetime import UTC, datetime
from typing import Literal

from sglang_omni.engines.runtime.process_output import OUTPUT_LOG
from sglang_omni.observability.trace import current_trace

LogFormat = Literal["text", "json"]

TEXT = "%(asctime)s %(levelname)s %(name)s%(request)s: %(message)s"
# They log addresses of downloads, which are the user's, or what we log ourselves.
TALKATIVE = ("httpx", "uvicorn.access")


class RequestId(logging.Filter):
    """Gives every record the id of the request that its task works for, or says which engine it
    is from."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        trace = current_trace()
        record.request_id = trace.id if trace else None
        source = trace.id if trace else getattr(record, "engine", None)
        record.request = f" [{source}]" if source else ""
        return True


class JsonLines(logging.Formatter):
    """One JSON object in a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time (UTC), level, logger, message and, where there is one, request id."""
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


def set_up(level: str, log_format: LogFormat) -> None:
    """Have everything logged to stderr in one form. What engines print, where it is shown, joins in
    as JSON only: on a terminal it stays as it is, above the progress bars."""
    handler = logging.StreamHandler()
    handler.addFilter(RequestId())
    handler.setFormatter(JsonLines() if log_format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    OUTPUT_LOG.handlers = [handler] if log_format == "json" else []
    OUTPUT_LOG.setLevel(logging.INFO)
    OUTPUT_LOG.propagate = False
