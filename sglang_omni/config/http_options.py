"""Options of HTTP connections: size and time limits."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Count, Integer, Number


@dataclass(frozen=True, config=OPTION_CONFIG)
class HttpOptions:
    """Limits of every connection, which apply before a key is checked."""

    max_header_bytes: Annotated[Integer, Field(ge=1024)] = 64 << 10
    """Maximum size of the request line and headers together (431 beyond)."""

    max_url_bytes: Annotated[Integer, Field(ge=256)] = 8 << 10
    """Maximum size of a URL (414 beyond)."""

    header_timeout: Annotated[Number, Field(ge=0.1)] = 30.0
    """Time limit for the request line and headers, in seconds."""

    # Longer than clients keep idle connections, so that no request hits one that is being closed.
    keep_alive_timeout: Annotated[Number, Field(ge=0.1)] = 75.0
    """Seconds after which a connection without a request is closed."""

    min_body_rate: Count = 1024
    """Minimum average rate of a body over body_window, in bytes per second (408 below)."""

    body_window: Annotated[Number, Field(ge=0.1)] = 20.0
    """Window of the average rate of a body, in seconds."""

    max_bodies_bytes: Annotated[Integer, Field(ge=1 << 20)] = 512 << 20
    """Maximum size of all bodies in memory together (503 beyond)."""

    max_bodies_rate: Annotated[Integer, Field(ge=1 << 20)] = 128 << 20
    """Maximum rate at which all bodies together are read, in bytes per second."""
