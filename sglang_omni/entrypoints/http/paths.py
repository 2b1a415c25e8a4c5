"""Paths of public, admin and monitoring routes."""

# Public: health, version, documentation and the page to try the server.
DOCS_PATH = "/docs"
HEALTH_PATHS = ("/health", "/ready", "/ping", "/health_generate", "/version")
PUBLIC_PATHS = frozenset({"/", *HEALTH_PATHS, DOCS_PATH, "/openapi.json"})
# The files of the page at "/" and of the documentation.
PLAYGROUND_PREFIX = "/playground/"
# Drawn images, by names that cannot be guessed.
IMAGE_FILES_PREFIX = "/v1/images/files/"
PUBLIC_PREFIXES = (PLAYGROUND_PREFIX, f"{DOCS_PATH}/", IMAGE_FILES_PREFIX)
# These need a key. Gateways ask for them every few seconds.
MONITORING_PATHS = frozenset(
    {
        *("/metrics", "/v1/loads", "/get_load"),
        *("/server_info", "/get_server_info", "/model_info", "/get_model_info"),
    }
)
ADMIN_PREFIX = "/admin/"


def is_public_path(path: str) -> bool:
    """Return whether a route needs no key."""
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES)


def is_admin_path(path: str) -> bool:
    """Return whether a route needs an administrator's key."""
    return path.startswith(ADMIN_PREFIX)


def is_monitoring_path(path: str) -> bool:
    """Return whether a route monitors the server, so that it is served even while draining."""
    return is_public_path(path) or path in MONITORING_PATHS or is_admin_path(path)
