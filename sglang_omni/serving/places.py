"""Moves the replicas of engines to the machines and GPUs that their options name."""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config
from sglang_omni.engines.remote.contract import ClusterSettings, TlsFiles, move_to_node
from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.placement.place_options import Place, get_places


def spread(
    spec: ProcessSpec,
    settings: Sequence[Any],
    places: Sequence[Place],
    config: Config,
    environments: Sequence[Mapping[str, str]] | None = None,
) -> tuple[ProcessSpec, ...]:
    """Return a replica of `spec` with each of the `settings`, each at its place.

    Args:
        spec: What all replicas have in common.
        settings: The settings of each replica.
        places: The place of each replica.
        config: The server's configuration.
        environments: The environment variables of each replica, None for those of `spec`.

    Raises:
        ConfigError: The options of the cluster are incomplete.
    """
    replicas = spec.replicate(settings)
    if environments is not None:
        pairs = zip(replicas, environments, strict=True)
        replicas = tuple(replace(replica, env=env) for replica, env in pairs)
    return tuple(
        _move(replace(replica, gpus=place.gpus), place, config)
        for replica, place in zip(replicas, places, strict=True)
    )


def build_decoder_move(config: Config) -> Callable[[ProcessSpec, int], ProcessSpec] | None:
    """Return how decoder processes move to the places of `media.place`, None if it is unset.

    Raises:
        ConfigError: A place cannot be used.
    """
    places = get_places(config, "media", "cpu")
    if not places:
        return None
    return lambda spec, number: _move(spec, places[number % len(places)], config)


def _move(spec: ProcessSpec, place: Place, config: Config) -> ProcessSpec:
    if not place.node:
        return spec
    env = dict(spec.env)
    if place.gpus:
        env[VISIBLE_DEVICES_VARIABLE] = ",".join(map(str, place.gpus))
    return move_to_node(replace(spec, env=env), place.node, build_cluster_settings(config))


def build_cluster_settings(config: Config) -> ClusterSettings:
    """Return the settings of the cluster.

    Raises:
        ConfigError: An option is missing, or `bind` is no network.
    """
    options = config.cluster
    files = [_require(config, name) for name in ("tls_ca", "tls_certificate", "tls_key")]
    if options.bind is not None:
        try:
            ipaddress.ip_network(options.bind)
        except ValueError as error:
            raise make_option_error("cluster.bind", f"cluster.bind: {error}") from None
    return ClusterSettings(options.ray_address, options.bind, TlsFiles(*files))


def _require(config: Config, name: str) -> Path:
    value: Path | None = getattr(config.cluster, name)
    if value is None:
        raise make_option_error(
            f"cluster.{name}", f"cluster.{name} is unset: engines on other machines need TLS"
        )
    return value.absolute()
