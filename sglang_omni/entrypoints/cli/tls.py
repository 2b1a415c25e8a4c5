"""Loads and checks TLS certificates before anything else is loaded."""

import logging
import ssl
from contextlib import suppress
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.protocol.errors import ConfigError

LOGGER = logging.getLogger(__name__)

CERTIFICATE, KEY, CLIENT_CA = "tls_certificate", "tls_key", "tls_client_ca"
NOT_YET_VALID, EXPIRED = 9, 10
"""OpenSSL's codes for the result of a certificate's verification."""


class _EncryptedKey(Exception):
    """A key has a passphrase; OpenSSL would ask for it on the terminal."""


def load_pair(context: ssl.SSLContext, config: Config) -> None:
    """Load the certificate and its key into a server's context. Warn if it is not valid now.

    Raises:
        ConfigError: A file cannot be used; `param` names the option.
    """
    certificate, key = config.tls_certificate, config.tls_key
    assert certificate is not None
    assert key is not None
    _require_pem(certificate, CERTIFICATE, b"-----BEGIN CERTIFICATE-----", "certificate")
    _require_pem(key, KEY, b"PRIVATE KEY-----", "private key")
    try:
        context.load_cert_chain(certificate, key, password=_reject_passphrase)
    except _EncryptedKey:
        message = f"{KEY} {key} has a passphrase; decrypt it: openssl pkey -in FILE -out NEW"
        raise ConfigError(message, param=KEY) from None
    except ssl.SSLError as error:
        raise _make_config_error(error, certificate, key) from None
    _warn_if_expired(context, certificate)


def load_authority(context: ssl.SSLContext, client_ca: Path) -> None:
    """Load the authority that client certificates are verified with. Raises `ConfigError`."""
    _require_pem(client_ca, CLIENT_CA, b"-----BEGIN CERTIFICATE-----", "certificate")
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError as error:
        message = f"{CLIENT_CA} {client_ca} cannot be used: {error.reason}"
        raise ConfigError(message, param=CLIENT_CA) from None


def _reject_passphrase() -> str:
    raise _EncryptedKey


def _require_pem(path: Path, option: str, marker: bytes, description: str) -> None:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror}", param=option) from None
    if marker not in content:
        raise ConfigError(f"{option} {path} holds no {description} in PEM format", param=option)


def _make_config_error(error: ssl.SSLError, certificate: Path, key: Path) -> ConfigError:
    if error.reason == "KEY_VALUES_MISMATCH":
        message = f"{KEY} {key} is not the key of {CERTIFICATE} {certificate}"
        return ConfigError(message, param=KEY)
    message = f"{CERTIFICATE} {certificate} and {KEY} {key} cannot be used: {error.reason}"
    return ConfigError(message, param=CERTIFICATE)


def _warn_if_expired(server: ssl.SSLContext, certificate: Path) -> None:
    """Warn if clients will reject the certificate because it is expired or not valid yet.

    The check is a handshake in memory with a client that trusts this certificate only. The server
    starts nevertheless, because the clock may be wrong.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_end = client.wrap_bio(to_client, to_server)
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        for end in (client_end, server_end, client_end):
            _step_handshake(end)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in (NOT_YET_VALID, EXPIRED):
            LOGGER.warning(
                "clients will reject tls_certificate %s (%s); renew it, then send SIGHUP",
                certificate,
                error.verify_message,
            )


def _step_handshake(end: ssl.SSLObject) -> None:
    with suppress(ssl.SSLWantReadError):
        end.do_handshake()
