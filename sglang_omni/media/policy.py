"""The rules for fetching media of requests."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FetchPolicy:
    """Where media may come from, and their limits.

    Attributes:
        allowed_domains: Host names in lower case. A leading dot allows all subdomains instead. If
            empty, every public host is allowed.
        allowed_local_path: The folder below which local files may be read; None for no files.
        private_hosts: "host:port" that are allowed although their address is not public.
        file_bytes: The maximum size of a file.
        seconds: The time limit for a file.
        max_redirects: The maximum number of HTTP redirects.
    """

    allowed_domains: frozenset[str] = frozenset()
    allowed_local_path: Path | None = None
    private_hosts: frozenset[str] = frozenset()
    file_bytes: int = 64 << 20
    seconds: float = 10.0
    max_redirects: int = 3
