"""SIGHUP: keys and certificates are read again, without a restart."""

import logging
import ssl

from sglang_omni.config.options import Config
from sglang_omni.entrypoints.api_keys import read_keys
from sglang_omni.entrypoints.cli.tls import load_pair
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.protocol.errors import ConfigError

LOGGER = logging.getLogger(__name__)


def reload(config: Config, access: Access, context: ssl.SSLContext | None) -> None:
    """Read the sources of keys and the certificate again, for requests and connections from now on.

    What cannot be used is said, and then everything stays as it was.
    """
    try:
        keys = read_keys(config.api_key, "api_key")
        admin_keys = read_keys(config.admin_api_key, "admin_api_key")
        if context is not None and config.tls_certificate and config.tls_key:
            # Tried elsewhere first: a failure halfway would leave a pair that does not fit.
            load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), config)
            load_pair(context, config)
    except ConfigError as error:
        LOGGER.error("SIGHUP: nothing was reloaded, the old stays in use: %s", error.message)
        return
    access.keys, access.admin_keys = keys, admin_keys
    what = f"{len(keys.digests)} API keys, {len(admin_keys.digests)} keys of administrators"
    LOGGER.warning("SIGHUP: reloaded %s%s", what, " and the certificate" if context else "")
