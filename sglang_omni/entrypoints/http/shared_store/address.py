"""Reads from the options how Redis is reached. Imports no Redis client."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.shared_store_options import SharedStoreOptions
from sglang_omni.entrypoints.secret_source import read_secret
from sglang_omni.protocol.errors import ConfigError

URL, PASSWORD = "shared_store.url", "shared_store.password"
DEFAULT_PORT = 6379


@dataclass(frozen=True)
class RedisAddress:
    """Where Redis is, and how the server presents itself to it.

    Attributes:
        host: Name or address.
        port: TCP port.
        database: Number of the database.
        username: User; None: the default one.
        password: Password; None: none.
        tls: Files for TLS by the Redis client's names; None: no TLS.
    """

    host: str
    port: int
    database: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: dict[str, str] | None = None

    @property
    def shown(self) -> str:
        """Return the host and the port for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_address(options: SharedStoreOptions) -> RedisAddress:
    """Return the address, with the password.

    Raises:
        ConfigError: An option cannot be used; `param` names it. Neither the URL, which may contain
            a password by mistake, nor the password is quoted.
    """
    url = _split_url(options.url or "")
    if url.password is not None or url.username is not None:
        message = f"{URL} must not contain a user or a password"
        raise ConfigError(f"{message}; set shared_store.username and {PASSWORD}", param=URL)
    password = read_secret(options.password, PASSWORD) if options.password is not None else None
    return RedisAddress(
        host=url.hostname or "",
        port=DEFAULT_PORT if url.port is None else url.port,
        database=int(url.path.strip("/") or "0"),
        username=options.username,
        password=password,
        tls=_read_tls(options, url.scheme),
    )


def check_shared_store(options: SharedStoreOptions) -> None:
    """Check the options without asking Redis. Raises `ConfigError`; `param` names the option."""
    if options.url is not None:
        read_address(options)
        return
    for name in ("username", "password", "tls_ca", "tls_certificate", "tls_key"):
        if getattr(options, name) is not None:
            option = f"shared_store.{name}"
            raise make_option_error(option, f"{option} needs {URL}")


def _split_url(text: str) -> SplitResult:
    problem = f"{URL} must be redis://HOST:PORT/DATABASE or rediss://HOST:PORT/DATABASE"
    try:
        url = urlsplit(text)
        is_valid = url.scheme in ("redis", "rediss") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_valid = False
    database = url.path.strip("/") if is_valid else ""
    if not is_valid or url.query or url.fragment or not (not database or database.isdecimal()):
        raise make_option_error(URL, problem)
    return url


def _read_tls(options: SharedStoreOptions, scheme: str) -> dict[str, str] | None:
    """Return the files for TLS by the Redis client's names. Raises `ConfigError`."""
    paths = {
        "tls_ca": ("ssl_ca_certs", options.tls_ca),
        "tls_certificate": ("ssl_certfile", options.tls_certificate),
        "tls_key": ("ssl_keyfile", options.tls_key),
    }
    given = {name: path for name, (_, path) in paths.items() if path is not None}
    if scheme == "redis":
        for name in given:
            raise make_option_error(f"shared_store.{name}", f"shared_store.{name} needs rediss://")
        return None
    if (options.tls_certificate is None) != (options.tls_key is None):
        name = "shared_store.tls_certificate"
        raise make_option_error(name, f"{name} and shared_store.tls_key must be set together")
    _check_tls(given)
    return {argument: str(path) for argument, path in paths.values() if path is not None}


def _check_tls(given: dict[str, Path]) -> None:
    """Load the files, so that a wrong one is found at the start. Raises `ConfigError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    name = "tls_ca"
    try:
        if name in given:
            context.load_verify_locations(given[name])
        name = "tls_certificate"
        if name in given:
            # With a password OpenSSL does not ask for that of an encrypted key on the terminal.
            context.load_cert_chain(given[name], given["tls_key"], password="")
    except OSError as error:
        option = f"shared_store.{name}"
        message = f"{option} {given[name]} cannot be used: {type(error).__name__}"
        raise make_option_error(option, message) from None
