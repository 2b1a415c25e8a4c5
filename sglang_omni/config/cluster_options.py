"""Options of engines on other machines."""

from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, LocalPath, Text


@dataclass(frozen=True, config=OPTION_CONFIG)
class ClusterOptions:
    """Options of engines on other machines, which a Ray cluster starts."""

    ray_address: Text | None = None
    """HOST:PORT of the Ray cluster; unset: every engine runs on this machine."""

    bind: Text | None = None
    """Network, such as 10.0.0.0/24, that engines connect through; unset: any network."""

    tls_ca: LocalPath | None = None
    """Authority of the machines' certificates, a file on each of them; unset: no cluster."""

    tls_certificate: LocalPath | None = None
    """Certificate of the machine, at the same path on each; unset: no cluster."""

    tls_key: LocalPath | None = None
    """Private key of tls_certificate, at the same path on each machine; unset: no cluster."""
