"""Which routes are not for callers who want an answer, but for those who run the server."""

# Open to everybody: they say whether the server lives, and what it can be asked.
OPEN = frozenset({"/health", "/ready", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"})
METRICS = "/metrics"
ADMIN = "/admin/"


def is_open(path: str) -> bool:
    """Whether a route needs no key."""
    return path in OPEN


def is_admin(path: str) -> bool:
    """Whether a route needs the key of an administrator."""
    return path.startswith(ADMIN)


def is_watched(path: str) -> bool:
    """Whether a route is one of those that watch the server, and so is answered always."""
    return path in OPEN or path == METRICS or is_admin(path)
