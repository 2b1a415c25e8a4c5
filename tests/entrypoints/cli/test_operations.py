"""What operators do to a server and get wrong: certificates, signals, addresses, two of a kind."""

import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx
import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

from tests.server.running import free_port, wait_until

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[3]
MEDIA = ROOT / "tests" / "media"
CERTIFICATE, KEY = MEDIA / "pictures.example.crt", MEDIA / "pictures.example.key"
COMMAND = (sys.executable, "-m", "tests.entrypoints.cli.quick_server")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
START_S = 60
FIRST, SECOND = "the-first-key-of-all", "the-second-key-of-all"


@dataclass(frozen=True)
class Started:
    """A server process, its log file and its port."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int

    @property
    def printed(self) -> str:
        return self.log.read_text()

    def says(self, text: str) -> None:
        wait_until(lambda: text in self.printed, 10, text)


@contextmanager
def started(**options: object) -> Iterator[Started]:
    port = options.setdefault("port", free_port())
    given = [f"{name}={value}" for name, value in options.items()]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w") as log:
        process = subprocess.Popen([*COMMAND, *given], stdout=log, stderr=log, env=ENVIRONMENT)
        server = Started(process, Path(folder) / "log", int(str(port)))
        try:
            wait_until(
                lambda: "Stop    Ctrl-C" in server.printed or process.poll() is not None,
                START_S,
                "started",
            )
            assert process.poll() is None, server.printed
            yield server
        finally:
            process.kill()
            process.wait()


def refused(**options: object) -> str:
    """The one line in which a start ends before engines are loaded."""
    options.setdefault("port", free_port())
    given = [f"{name}={value}" for name, value in options.items()]
    done = subprocess.run(
        [*COMMAND, *given], env=ENVIRONMENT, capture_output=True, text=True, timeout=START_S
    )
    assert done.returncode == 1
    assert "engines would load" not in done.stdout
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    return line


def openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def new_pair(folder: Path, name: str, *more: str) -> dict[str, Path]:
    """A key and a certificate of its own for localhost."""
    pair = {"tls_certificate": folder / f"{name}.crt", "tls_key": folder / f"{name}.key"}
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subject = ("-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    files = ("-keyout", pair["tls_key"], "-out", pair["tls_certificate"])
    openssl(*made, *subject, *files, *(more or ("-days", "2")))
    return pair


def test_what_is_wrong_with_a_certificate_is_said_before_engines_load(tmp_path: Path) -> None:
    pair = {"tls_certificate": CERTIFICATE, "tls_key": KEY}
    encrypted, other = tmp_path / "encrypted.key", new_pair(tmp_path, "other")["tls_key"]
    openssl("pkey", "-in", KEY, "-aes256", "-passout", "pass:secret", "-out", encrypted)
    nowhere = tmp_path / "nowhere"
    for changed, line in (
        ({"tls_certificate": nowhere}, f"tls_certificate {nowhere}: No such file or directory"),
        ({"tls_key": nowhere}, f"tls_key {nowhere}: No such file or directory"),
        ({"tls_key": tmp_path}, f"tls_key {tmp_path}: Is a directory"),
        ({"tls_key": other}, f"tls_key {other} is not the key of tls_certificate {CERTIFICATE}"),
        ({"tls_key": encrypted}, f"tls_key {encrypted} has a passphrase; decrypt it: openssl"),
        ({"tls_key": CERTIFICATE}, f"tls_key {CERTIFICATE} holds no private key in PEM format"),
        ({"tls_client_ca": KEY}, f"tls_client_ca {KEY} holds no certificate in PEM format"),
    ):
        assert refused(**{**pair, **changed}).startswith(f"sgl-omni: {line}")


def test_an_expired_certificate_is_warned_of(tmp_path: Path) -> None:
    pair = new_pair(tmp_path, "old")
    key = load_pem_private_key(pair["tls_key"].read_bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), serial_number=1)
    builder = builder.not_valid_before(datetime(2020, 1, 1)).not_valid_after(datetime(2021, 1, 1))
    certificate = builder.sign(key, SHA256())
    pair["tls_certificate"].write_bytes(certificate.public_bytes(Encoding.PEM))
    with started(**pair) as server:
        server.says(f"clients will reject tls_certificate {pair['tls_certificate']}")
        assert "certificate has expired" in server.printed


def issued_to(port: int) -> bytes:
    return ssl.get_server_certificate(("127.0.0.1", port)).encode()


def test_sighup_reloads_keys_and_certificate_and_keeps_the_old_where_the_new_are_broken(
    tmp_path: Path,
) -> None:
    pair, new = new_pair(tmp_path, "old"), new_pair(tmp_path, "new")
    keys = tmp_path / "keys"
    keys.write_text(FIRST)
    before, after = pair["tls_certificate"].read_bytes(), new["tls_certificate"].read_bytes()
    with started(api_key=f"file:{keys}", **pair) as server, ExitStack() as stack:
        url = f"https://127.0.0.1:{server.port}"
        kept = stack.enter_context(httpx.Client(base_url=url, verify=False))

        def status(key: str) -> int:
            headers = {"Authorization": f"Bearer {key}"}
            return kept.get("/v1/models", headers=headers).status_code

        assert (status(FIRST), status(SECOND)) == (200, 401)
        assert issued_to(server.port).strip() == before.strip()
        keys.write_text(SECOND)
        pair["tls_certificate"].write_bytes(after)
        server.process.send_signal(signal.SIGHUP)
        server.says(
            "SIGHUP: nothing was reloaded; the old keys and certificate stay in use: tls_key"
        )
        assert (status(FIRST), status(SECOND)) == (200, 401)
        assert issued_to(server.port).strip() == before.strip()
        pair["tls_key"].write_bytes(new["tls_key"].read_bytes())
        server.process.send_signal(signal.SIGHUP)
        server.says("SIGHUP: reloaded 1 API keys")
        assert (status(FIRST), status(SECOND)) == (401, 200)
        assert issued_to(server.port).strip() == after.strip()


def test_a_terminal_that_closes_ends_the_server_and_a_signal_from_another_does_not() -> None:
    ours, theirs = pty.openpty()
    # setsid makes the terminal the server's own, as that of a login shell.
    command = ["setsid", "--ctty", *COMMAND, f"port={free_port()}"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT)
    os.close(theirs)
    try:
        read_until(ours, b"Ctrl-C")
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGHUP)
        read_until(ours, b"SIGHUP: reloaded")
    finally:
        os.close(ours)
    try:
        assert process.wait(20) == 0
    finally:
        process.kill()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive


def read_until(terminal: int, words: bytes) -> None:
    """Read what a process prints on its terminal."""
    printed = b""
    while words not in printed:
        printed += os.read(terminal, 4096)


def test_a_second_server_on_the_port_is_refused_and_one_on_another_disturbs_nobody() -> None:
    with started() as first:
        line = refused(port=first.port)
        assert line == (
            f"sgl-omni: port {first.port} of 127.0.0.1 is in use; choose another with --port"
        )
        with started() as second:
            assert second.port != first.port
        assert httpx.get(f"http://127.0.0.1:{first.port}/ready").status_code == 200


@pytest.mark.parametrize("host", ["::1", "::"])
def test_it_serves_over_ipv6_and_prints_an_address_to_open(host: str) -> None:
    with started(host=host) as server:
        (address,) = re.findall(r"^Open +(\S+)$", server.printed, re.M)
        assert address == f"http://[::1]:{server.port}/"
        assert httpx.get(f"{address}v1/models").status_code == 200
        stranger = httpx.get(f"{address}v1/models", headers={"Host": "evil.example"})
        assert stranger.status_code == (403 if host == "::1" else 200)
        command = [
            sys.executable,
            "-m",
            "sglang_omni",
            "chat",
            "--base-url",
            address,
        ]
        said = subprocess.run(
            command, input="hello\n", env=ENVIRONMENT, capture_output=True, text=True, timeout=60
        )
        assert said.returncode == 0
        assert "0 1 2" in said.stdout
        if host == "::":
            with socket.create_connection(("127.0.0.1", server.port), timeout=5):
                pass
