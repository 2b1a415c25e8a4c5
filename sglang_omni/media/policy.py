"""What may be fetched for a request, from where, and how much of it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FetchPolicy:
    """Where media may come from.

    `allowed_domains` are host names in lower case, each for itself only, or with a dot in front
    for everything below; none means every public host. `private_hosts` are "host:port" that may be
    asked although their address is not public. Files of this machine are read below
    `allowed_local_path` only, and not at all without one. A file has at most `file_bytes`, and
    `seconds` to arrive, over at most `max_redirects` redirects.
    """

    allowed_domains: frozenset[str] = frozenset()
    allowed_local_path: Path | None = None
    private_hosts: frozenset[str] = frozenset()
    file_bytes: int = 64 << 20
    seconds: float = 10.0
    max_redirects: int = 3
