"""A server does not start with a shared store that it cannot use, and says why."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from sglang_omni.config.load import load_config, to_yaml
from sglang_omni.entrypoints.http.shared_store.open_stores import open_stores
from sglang_omni.entrypoints.http.state_stores import StateStores
from sglang_omni.entrypoints.startup.preflight_checks import check_config
from sglang_omni.protocol.errors import ConfigError, StartupError
from tests.entrypoints.http.shared_store.redis_server import RedisServer
from tests.entrypoints.http.shared_store.stores_under_test import open_raw, open_shared
from tests.entrypoints.http.shared_store.test_both_kinds import make_response
from tests.server.running import free_port

ROOT = Path(__file__).parents[4]
SECRET = "pass#word,with:everything"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"url": "http://host:6379/0"}, "url"),
        ({"url": "host:6379"}, "url"),
        ({"url": "redis://"}, "url"),
        ({"url": "redis://host:port/0"}, "url"),
        ({"url": "redis://host:99999/0"}, "url"),
        ({"url": "redis://host:6379/first"}, "url"),
        ({"url": "redis://host:6379/0?socket_timeout=99"}, "url"),
        ({"url": f"redis://:{SECRET.replace('#', '')}@host:6379/0"}, "url"),
        ({"url": f"redis://host:{SECRET}"}, "url"),
        ({"url": "redis://user@host:6379/0"}, "url"),
        ({"url": "redis://host", "password": SECRET}, "password"),
        ({"url": "redis://host", "password": "env:NOWHERE_AT_ALL"}, "password"),
        ({"url": "redis://host", "password": "file:/nowhere"}, "password"),
        ({"url": "redis://host", "tls_ca": "/nowhere"}, "tls_ca"),
        ({"url": "rediss://host", "tls_ca": "/nowhere"}, "tls_ca"),
        ({"url": "rediss://host", "tls_key": "/nowhere"}, "tls_certificate"),
        ({"password": "env:HOME"}, "password"),
        ({"username": "omni"}, "username"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_and_no_secret_quoted(
    options: dict[str, str], param: str
) -> None:
    given = {f"shared_store.{name}": value for name, value in options.items()}
    with pytest.raises(ConfigError) as caught:
        check_config(load_config(None, given))
    assert caught.value.param == f"shared_store.{param}"
    assert "pass" not in caught.value.message.replace("password", "").replace("passw0rd", "")


def test_a_printed_configuration_shows_where_the_password_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    given = {"shared_store.url": "redis://host", "shared_store.password": "env:STORE_PASSWORD"}
    config = load_config(None, given)
    check_config(config)
    assert "env:STORE_PASSWORD" in to_yaml(config)
    assert SECRET not in to_yaml(config)


async def start_error(url: str, **options: Any) -> StartupError:
    """Return why a server with these options does not start."""
    with pytest.raises(StartupError) as caught:
        async with open_shared(url, **options):
            pass
    assert SECRET not in caught.value.message
    return caught.value


async def test_no_redis_at_the_start_is_an_error_that_names_the_option(
    shared_redis: RedisServer,
) -> None:
    port = free_port()
    error = await start_error(f"redis://127.0.0.1:{port}/0")
    assert error.param == "shared_store.url"
    assert f"127.0.0.1:{port}" in error.message
    error = await start_error("redis://nowhere.invalid/0")
    assert "nowhere.invalid:6379" in error.message


async def test_redis_that_hangs_at_the_start_is_an_error_in_time(own_redis: RedisServer) -> None:
    own_redis.pause()
    error = await start_error(own_redis.url, timeout_s=0.2)
    assert error.param == "shared_store.url"
    own_redis.resume()


async def test_a_password_is_given_to_redis_and_to_nobody_else(
    own_redis: RedisServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("DEBUG")
    async with open_raw(own_redis.url) as raw:
        await raw.config_set("requirepass", SECRET)
    error = await start_error(own_redis.url)
    assert error.param == "shared_store.password"
    file = tmp_path / "password"
    file.write_text(f"wrong-{SECRET}\n")
    error = await start_error(own_redis.url, password=f"file:{file}")
    assert error.param == "shared_store.password"
    file.write_text(f"{SECRET}\n")
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    for source in (f"file:{file}", "env:STORE_PASSWORD"):
        async with open_shared(own_redis.url, password=source) as (stores, _):
            assert await stores.responses.put("a", make_response("resp_1"))
    assert SECRET not in caplog.text


async def test_a_user_that_may_not_do_all_is_an_error(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    options: dict[str, Any] = {"username": "omni", "password": "env:STORE_PASSWORD"}
    async with open_raw(own_redis.url) as raw:

        async def allow(*rules: str) -> None:
            await raw.execute_command("ACL", "SETUSER", "omni", "reset", "on", f">{SECRET}", *rules)

        await allow("~other:*", "+@all")
        error = await start_error(own_redis.url, **options)
        assert error.param == "shared_store.password"
        assert "a command on keys that begin with" in error.message
        await allow("~sgl-omni:*", "+set", "+get")
        await start_error(own_redis.url, **options, key_prefix="sgl-omni")
        # What the documents say is enough.
        await allow("~sgl-omni:*", "+set", "+get", "+getex", "+mget", "+del")
        async with open_shared(own_redis.url, **options, key_prefix="sgl-omni") as (stores, _):
            assert await stores.responses.put("a", make_response("resp_1"))
            assert await stores.responses.get("a", "resp_1") is not None
            assert await stores.transcripts.keep("a", "audio-1", "words")
            assert await stores.transcripts.recall("a", ["audio-1"]) == {"audio-1": "words"}


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A folder with an authority, and a certificate of it for 127.0.0.1."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    for name in ("ca", "other"):
        openssl(
            *(
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={name}",
            ),
            *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
        )
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1")
    openssl(
        *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=redis"),
        *("-keyout", "redis.key", "-out", "redis.csr"),
    )
    openssl(
        *("x509", "-req", "-in", "redis.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-days", "2"),
        *("-CAcreateserial", "-extfile", "names", "-out", "redis.crt"),
    )
    return tmp_path


async def test_tls_is_checked_at_both_ends(certificates: Path) -> None:
    redis = RedisServer(
        certificates,
        *("--tls-cert-file", str(certificates / "redis.crt")),
        *("--tls-key-file", str(certificates / "redis.key")),
        *("--tls-ca-cert-file", str(certificates / "ca.crt")),
        tls=True,
    )
    redis.start()
    try:
        url = redis.url.replace("redis://", "rediss://")
        own: dict[str, Any] = {
            "tls_certificate": certificates / "redis.crt",
            "tls_key": certificates / "redis.key",
        }
        async with open_shared(url, tls_ca=certificates / "ca.crt", **own) as (stores, _):
            assert await stores.responses.put("a", make_response("resp_1"))
            assert await stores.responses.get("a", "resp_1") == make_response("resp_1")
        for wrong in (
            {"tls_ca": certificates / "other.crt", **own},
            {"tls_ca": certificates / "ca.crt"},
            own,
        ):
            assert (await start_error(url, **wrong)).param == "shared_store.url"
        named = url.replace("127.0.0.1", "localhost")
        error = await start_error(named, tls_ca=certificates / "ca.crt", **own)
        assert error.param == "shared_store.url"
        plain = await start_error(redis.url)
        assert plain.param == "shared_store.url"
    finally:
        redis.kill()


async def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("client", "redis_stores"):
        module = f"sglang_omni.entrypoints.http.shared_store.{name}"
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    error = await start_error("redis://127.0.0.1:1/0")
    assert error.param == "shared_store.url"
    assert "sglang_omni[redis]" in error.message


async def test_unset_each_server_has_stores_of_its_own() -> None:
    registry, config = CollectorRegistry(), load_config(None, {})
    async with open_stores(config, registry) as first, open_stores(config, registry) as second:
        assert isinstance(first, StateStores)
        assert await first.responses.put("a", make_response("resp_1"))
        assert await second.responses.get("a", "resp_1") is None
        assert first.describe() == {}
    assert list(registry.collect()) == []


def test_unset_no_redis_is_imported() -> None:
    program = """
import asyncio, sys
from prometheus_client import CollectorRegistry
from sglang_omni.config.load import load_config
from sglang_omni.entrypoints.cli import serve
async def main():
    async with serve.open_stores(load_config(None, {}), CollectorRegistry()):
        print([name for name in sys.modules if name.partition(".")[0] == "redis"])
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "[]\n", done.stderr
