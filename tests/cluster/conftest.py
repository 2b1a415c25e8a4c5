"""Two machines of one Ray cluster, and their certificates."""

import importlib.util
import os
import shutil
from collections.abc import Iterator

import pytest

from sglang_omni.engines.remote.contract import ClusterSettings, TlsFiles
from tests.cluster.hosts import NETWORK, Machines, ray_machines
from tests.engines.remote.conftest import make_certificates


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("there is no Ray here; ci/stage.sh cluster installs it")
    missing = [name for name in ("ip", "unshare", "mount") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"network namespaces need root and {', '.join(missing) or 'ip'}")
    with ray_machines(tmp_path_factory.mktemp("ray")) as running:
        yield running


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_certificates(tmp_path_factory.mktemp("tls"), "node")["node"]


@pytest.fixture(scope="session")
def cluster(machines: Machines, tls: TlsFiles) -> ClusterSettings:
    return ClusterSettings(machines.address, NETWORK, tls)
