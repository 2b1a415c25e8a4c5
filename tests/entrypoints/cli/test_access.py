"""From a configuration to keys and TLS."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.config.load import load_config, to_yaml
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.cli.access import build_tls_options, read_access
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server
from sglang_omni.protocol.errors import ConfigError

MEDIA = Path(__file__).parents[2] / "media"
CERTIFICATE, KEY = MEDIA / "pictures.example.crt", MEDIA / "pictures.example.key"


def config(**values: Any) -> Config:
    return load_config(None, values)


def test_a_printed_configuration_shows_where_keys_are_and_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEYS", "a-secret-of-ours")
    asked = config(api_key="env:KEYS")
    assert read_access(asked).keys.match("a-secret-of-ours")
    assert "env:KEYS" in to_yaml(asked)
    assert "secret" not in to_yaml(asked)


@pytest.mark.parametrize(
    ("host", "warned"),
    [
        ("127.0.0.1", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("localhost", False),
        ("0.0.0.0", True),
    ],
)
def test_an_open_server_that_others_reach_is_said_to_be_so(
    host: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    read_access(config(host=host))
    assert ("set --api-key" in caplog.text) == warned


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({"tls_certificate": str(CERTIFICATE)}, "tls_certificate"),
        ({"tls_key": str(KEY)}, "tls_certificate"),
        ({"tls_client_ca": str(CERTIFICATE)}, "tls_client_ca"),
        ({"tls_certificate": "/nowhere.crt", "tls_key": str(KEY)}, "tls_certificate"),
        ({"tls_certificate": str(CERTIFICATE), "tls_key": __file__}, "tls_key"),
        (
            {
                "tls_certificate": str(CERTIFICATE),
                "tls_key": str(KEY),
                "tls_client_ca": "/nowhere.crt",
            },
            "tls_client_ca",
        ),
    ],
)
def test_half_of_a_certificate_is_refused(values: dict[str, str], param: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build_tls_options(config(**values))
    assert refused.value.param == param


def test_without_a_certificate_there_is_no_tls() -> None:
    assert build_tls_options(config()) == {}


@pytest.mark.parametrize("client_ca", [False, True])
def test_the_options_are_uvicorns(client_ca: bool) -> None:
    values = {"tls_certificate": str(CERTIFICATE), "tls_key": str(KEY)}
    if client_ca:
        values["tls_client_ca"] = str(CERTIFICATE)
    server = create_web_server(lambda: None, "critical", 0, **build_tls_options(config(**values)))  # type: ignore[arg-type,misc]
    server.config.load()
    assert server.config.ssl is not None
    assert server.config.ssl.verify_mode == (ssl.CERT_REQUIRED if client_ca else ssl.CERT_NONE)
