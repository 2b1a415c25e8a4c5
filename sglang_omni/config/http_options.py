"""Options of HTTP connections: size and time limits."""

from dataclasses import dataclass
from typing import Annotated

from sglang_omni.config.option_types import Count, Range


@dataclass(frozen=True)
class HttpOptions:
    """Limits of every connection. They apply before a key is checked.

    Attributes:
        max_header_bytes: Maximum size of the request line and headers together (431 beyond).
        max_url_bytes: Maximum size of a URL (414 beyond).
        header_timeout: Time limit for the request line and headers, in seconds.
        keep_alive_timeout: Seconds after which a connection without a request is closed.
        min_body_rate: Minimum average rate of a body over `body_window`, in bytes per second (408
            below).
        body_window: Window of that average, in seconds.
        max_bodies_bytes: Maximum size of all bodies in memory together (503 beyond).
        max_bodies_rate: Maximum rate at which all bodies together are read, in bytes per second.
    """

    max_header_bytes: Annotated[int, Range(1024)] = 64 << 10
    max_url_bytes: Annotated[int, Range(256)] = 8 << 10
    header_timeout: Annotated[float, Range(0.1)] = 30.0
    # Longer than clients keep idle connections, so that no request hits one that is being closed.
    keep_alive_timeout: Annotated[float, Range(0.1)] = 75.0
    min_body_rate: Count = 1024
    body_window: Annotated[float, Range(0.1)] = 20.0
    max_bodies_bytes: Annotated[int, Range(1 << 20)] = 512 << 20
    max_bodies_rate: Annotated[int, Range(1 << 20)] = 128 << 20
