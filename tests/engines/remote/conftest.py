"""Certificates of a cluster, and of somebody else's."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sglang_omni.engines.remote.contract import TlsFiles

SCRIPT = Path(__file__).parents[3] / "deploy" / "cluster" / "certificates.sh"


def make_certificates(folder: Path, *names: str) -> dict[str, TlsFiles]:
    """Run the script of `deploy/`. Return the files of each machine."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    subprocess.run([SCRIPT, folder, *names], check=True, capture_output=True)
    return {
        name: TlsFiles(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")
        for name in names
    }


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TlsFiles]:
    """The files of the machines `a` and `b` of one cluster."""
    return make_certificates(tmp_path_factory.mktemp("cluster"), "a", "b")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """The files of a machine of another cluster."""
    return make_certificates(tmp_path_factory.mktemp("other"), "c")["c"]
