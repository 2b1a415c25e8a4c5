"""Limits of HTTP connections: what a client may send, and how long it may take."""

from dataclasses import dataclass
from typing import Annotated

from sglang_omni.config.option_types import Count, Range


@dataclass(frozen=True)
class HttpOptions:
    """Limits of every connection, from its first byte, before a key is checked.

    The request line and headers may have `max_header_bytes` together (431) and a URL
    `max_url_bytes` (414); they must arrive within `header_timeout` seconds. A connection without a
    request is closed after `keep_alive_timeout` seconds. A body must bring `min_body_rate` bytes a
    second on average over every `body_window` seconds (408). All bodies that the server holds may
    have `max_bodies_bytes` together (503), and are read at `max_bodies_rate` bytes a second
    together.
    """

    max_header_bytes: Annotated[int, Range(1024)] = 64 << 10
    max_url_bytes: Annotated[int, Range(256)] = 8 << 10
    header_timeout: Annotated[float, Range(0.1)] = 30.0
    # Longer than clients keep theirs: a request must not meet a connection that is being closed.
    keep_alive_timeout: Annotated[float, Range(0.1)] = 75.0
    min_body_rate: Count = 1024
    body_window: Annotated[float, Range(0.1)] = 20.0
    max_bodies_bytes: Annotated[int, Range(1 << 20)] = 512 << 20
    max_bodies_rate: Annotated[int, Range(1 << 20)] = 128 << 20
