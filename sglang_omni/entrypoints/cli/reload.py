"""Reloads keys and certificates on SIGHUP, without a restart."""

import logging
import ssl

from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.api_keys import read_keys
from sglang_omni.entrypoints.cli.tls import load_pair
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.protocol.errors import ConfigError

LOGGER = logging.getLogger(__name__)


def reload(config: Config, access: Access, context: ssl.SSLContext | None) -> None:
    """Read the keys and the certificate again, for new requests and connections.

    If one of them cannot be used, log an error and keep all of the old ones.
    """
    try:
        keys = read_keys(config.api_key, "api_key")
        admin_keys = read_keys(config.admin_api_key, "admin_api_key")
        if context is not None and config.tls_certificate and config.tls_key:
            # Try another context first: a failure halfway would leave a mismatched pair in use.
            load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), config)
            load_pair(context, config)
    except ConfigError as error:
        LOGGER.error(
            "SIGHUP: nothing was reloaded; the old keys and certificate stay in use: %s",
            error.message,
        )
        return
    access.keys, access.admin_keys = keys, admin_keys
    counts = f"{len(keys.digests)} API keys, {len(admin_keys.digests)} admin keys"
    LOGGER.warning("SIGHUP: reloaded %s%s", counts, " and the certificate" if context else "")
