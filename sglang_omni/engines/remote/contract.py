"""Where an engine on another machine runs, and how it is reached. Plain data; no Ray."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sglang_omni.engines.runtime.process import ProcessSpec

PROXY_MODULE = "sglang_omni.engines.remote.proxy_main"


@dataclass(frozen=True)
class TlsFiles:
    """A machine's certificate with its key, and the authority that signed those of all machines."""

    ca: Path
    certificate: Path
    key: Path


@dataclass(frozen=True)
class ClusterSettings:
    """The machines of a server.

    Attributes:
        ray_address: HOST:PORT of the Ray cluster, if there is one.
        network: The network, such as 10.0.0.0/24, whose address of this machine is listened on;
            None allows every network.
        tls: The same paths on every machine.
    """

    ray_address: str | None
    network: str | None
    tls: TlsFiles


@dataclass(frozen=True)
class RemoteSettings:
    """The settings of an engine's proxy: the engine, and its machine.

    Attributes:
        name: The engine's name, for its log.
        node: The name, address or host name of a Ray node.
        env: The environment variables of the engine, added to those of the node.
        settings: The engine's own.
        listen: Where `sgl-omni node` connects, and the rank of its machine. None lets Ray start a
            host.
    """

    name: str
    node: str
    cluster: ClusterSettings
    env: Mapping[str, str]
    settings: Any
    listen: "RankAddress | None" = None


@dataclass(frozen=True)
class RankAddress:
    """Where the machine with a rank above 0 of a thinker connects to the first one."""

    host: str
    port: int
    rank: int


def move_to_node(spec: ProcessSpec, node: str, cluster: ClusterSettings) -> ProcessSpec:
    """Return the spec of an engine that runs on `node` instead of this machine."""
    settings = RemoteSettings(spec.name, node, cluster, spec.env, spec.settings)
    return replace(spec, settings=settings, env={}, node=node, module=PROXY_MODULE)
