"""Certificates: what is wrong with them is said before anything is loaded, with a remedy."""

import logging
import ssl
from contextlib import suppress
from pathlib import Path

from sglang_omni.config.options import Config
from sglang_omni.protocol.errors import ConfigError

LOGGER = logging.getLogger(__name__)

CERTIFICATE, KEY, CLIENT_CA = "tls_certificate", "tls_key", "tls_client_ca"
NOT_YET_VALID, EXPIRED = 9, 10
"""OpenSSL's numbers of what it finds when it verifies a certificate."""


class _Encrypted(Exception):
    """A key has a passphrase, for which OpenSSL would ask on the terminal."""


def load_pair(context: ssl.SSLContext, config: Config) -> None:
    """Load the certificate and its key into a server's context; warn where its time is not now.

    Raises `ConfigError` that names the option at fault.
    """
    certificate, key = config.tls_certificate, config.tls_key
    assert certificate is not None and key is not None
    _require_pem(certificate, CERTIFICATE, b"-----BEGIN CERTIFICATE-----", "certificate")
    _require_pem(key, KEY, b"PRIVATE KEY-----", "private key")
    try:
        context.load_cert_chain(certificate, key, password=_ask_nobody)
    except _Encrypted:
        message = f"{KEY} {key} has a passphrase; decrypt it: openssl pkey -in FILE -out NEW"
        raise ConfigError(message, param=KEY) from None
    except ssl.SSLError as error:
        raise _unusable(error, certificate, key) from None
    _warn_of_time(context, certificate)


def load_authority(context: ssl.SSLContext, client_ca: Path) -> None:
    """Load the certificates that clients' are checked against. Raises `ConfigError`."""
    _require_pem(client_ca, CLIENT_CA, b"-----BEGIN CERTIFICATE-----", "certificate")
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError as error:
        message = f"{CLIENT_CA} {client_ca} cannot be used: {error.reason}"
        raise ConfigError(message, param=CLIENT_CA) from None


def _ask_nobody() -> str:
    raise _Encrypted


def _require_pem(path: Path, option: str, mark: bytes, what: str) -> None:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror}", param=option) from None
    if mark not in content:
        raise ConfigError(f"{option} {path} holds no {what} in PEM form", param=option)


def _unusable(error: ssl.SSLError, certificate: Path, key: Path) -> ConfigError:
    if error.reason == "KEY_VALUES_MISMATCH":
        message = f"{KEY} {key} is not the key of {CERTIFICATE} {certificate}"
        return ConfigError(message, param=KEY)
    message = f"{CERTIFICATE} {certificate} and {KEY} {key} cannot be used: {error.reason}"
    return ConfigError(message, param=CERTIFICATE)


def _warn_of_time(server: ssl.SSLContext, certificate: Path) -> None:
    """Say so where clients will refuse the certificate for its time: by a handshake in memory,
    whose client trusts just this certificate. The server starts all the same, for the clock may be
    what is wrong."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, asked = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    try:
        for end in (asking, asked, asking):
            _shake_hands(end)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in (NOT_YET_VALID, EXPIRED):
            LOGGER.warning(
                "clients will refuse tls_certificate %s (%s); renew it, then send SIGHUP",
                certificate,
                error.verify_message,
            )


def _shake_hands(end: ssl.SSLObject) -> None:
    with suppress(ssl.SSLWantReadError):
        end.do_handshake()
