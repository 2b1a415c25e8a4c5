"""Reads the access rules and the TLS options from a configuration."""

import logging
import ssl
from typing import Any

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.api_keys import read_keys
from sglang_omni.entrypoints.cli.tls import load_authority, load_pair
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.middleware.hosts import (
    LOOPBACK_HOSTS,
    is_loopback,
    parse_host_name,
)

LOGGER = logging.getLogger(__name__)


def read_access(config: Config) -> Access:
    """Read the keys. Log a warning if anyone on the network can use the server.

    Raises `ConfigError`.
    """
    keys = read_keys(config.api_key, "api_key")
    access = Access(
        keys=keys,
        admin_keys=read_keys(config.admin_api_key, "admin_api_key"),
        origins=config.cors_origin,
        hosts=_get_allowed_hosts(config, has_keys=bool(keys)),
    )
    if not access.keys and not is_loopback(config.host):
        LOGGER.warning(
            "anyone who reaches %s can use this server; set --api-key to require a key",
            config.host,
        )
    return access


def build_tls_options(config: Config) -> dict[str, Any]:
    """Return uvicorn's TLS options, none without a certificate. Raises `ConfigError`."""
    certificate, key, client_ca = config.tls_certificate, config.tls_key, config.tls_client_ca
    if (certificate is None) != (key is None):
        raise make_option_error(
            "tls_certificate", "tls_certificate and tls_key must be set together"
        )
    if certificate is None:
        if client_ca is not None:
            raise make_option_error("tls_client_ca", "tls_client_ca needs tls_certificate")
        return {}
    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), config)
    if client_ca is not None:
        load_authority(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), client_ca)
    options: dict[str, Any] = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    if client_ca is not None:
        options |= {"ssl_ca_certs": str(client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    return options


def _get_allowed_hosts(config: Config, has_keys: bool) -> frozenset[str]:
    """Return the host names that requests may use; empty if any name is allowed."""
    configured = frozenset(map(parse_host_name, config.allowed_host))
    is_private = is_loopback(config.host) and not has_keys
    if not configured and not is_private:
        return frozenset()
    bound_host = f"[{config.host}]" if ":" in config.host else config.host
    return configured | LOOPBACK_HOSTS | {parse_host_name(bound_host)}
