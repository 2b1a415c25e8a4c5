"""Which routes are not for callers who want an answer, but for those who run the server."""

# Open to everybody: they say whether the server lives, what it can be asked, and let it be tried.
DOCUMENTATION = "/docs"
OPEN = frozenset({"/", "/health", "/ready", DOCUMENTATION, "/openapi.json"})
# The files of the page at "/", and of the documentation.
PLAYGROUND = "/playground/"
FILES = (PLAYGROUND, f"{DOCUMENTATION}/")
METRICS = "/metrics"
ADMIN = "/admin/"


def is_open(path: str) -> bool:
    """Whether a route needs no key."""
    return path in OPEN or path.startswith(FILES)


def is_admin(path: str) -> bool:
    """Whether a route needs the key of an administrator."""
    return path.startswith(ADMIN)


def is_watched(path: str) -> bool:
    """Whether a route is one of those that watch the server, and so is answered always."""
    return is_open(path) or path == METRICS or is_admin(path)
