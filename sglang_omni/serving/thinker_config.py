"""Builds the thinker's settings from a configuration: its ranks here, and on other machines."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config
from sglang_omni.engines.remote.contract import (
    PROXY_MODULE,
    RankAddress,
    RemoteSettings,
)
from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.engines.thinker.parallelism import get_ep_size
from sglang_omni.models.registry import family_of
from sglang_omni.placement.place import get_thinker_tp_size
from sglang_omni.serving.engine_config import (
    build_output_rules,
    get_deadlines,
    get_num_threads,
    resolve_device,
    resolve_dtype,
)
from sglang_omni.serving.places import build_cluster_settings

SGLANG_THINKER = "sglang_omni.engines.thinker.worker:open_worker"
SGLANG_RANKS = "sglang_omni.engines.thinker.rank_worker:open_worker"


def build_thinker_spec(
    config: Config, checkpoint: Path, env: Mapping[str, str] | None = None
) -> ProcessSpec:
    """Return the thinker; `env` extends its environment. Its companions are other machines' ranks.

    Raises:
        ConfigError: The options contradict each other or the checkpoint.
    """
    options, device = config.thinker, resolve_device(config.device)
    settings = ThinkerSettings(
        checkpoint=checkpoint,
        device=device,
        dtype=resolve_dtype(config.dtype, device),
        tp_size=get_thinker_tp_size(options),
        ep_size=options.ep_size,
        gpus=options.gpus,
        nodes=options.nodes,
        dist_init_addr=options.dist_init_addr,
        context_length=options.context_length,
        max_total_tokens=options.max_total_tokens,
        max_running_requests=options.max_running_requests,
        mem_fraction_static=options.mem_fraction_static,
        kv_cache_dtype=options.kv_cache_dtype,
        radix_cache=options.radix_cache,
        warm_up_prompts=options.warm_up_prompts,
        deterministic=options.deterministic,
        server_args=tuple(options.server_args.items()),
    )
    family = family_of(checkpoint)
    family.check_expert_ranks(checkpoint, get_ep_size(settings))
    mask = os.environ.get(VISIBLE_DEVICES_VARIABLE)
    spec = ProcessSpec(
        "thinker",
        family.thinker_factory or SGLANG_THINKER,
        settings,
        {**build_environment(settings, get_num_threads(), mask), **(env or {})},
        **get_deadlines(options),
        output=build_output_rules(config),
        gpus=_list_gpus(settings),
    )
    if options.nodes == 1:
        if options.dist_init_addr is not None:
            name = "thinker.dist_init_addr"
            raise make_option_error(name, f"{name} is only for thinker.nodes above 1")
        return spec
    if family.thinker_factory:
        raise make_option_error("thinker.nodes", "thinker.nodes: this family's thinker has one")
    return replace(spec, companions=_build_rank_specs(spec, config))


def _list_gpus(settings: ThinkerSettings) -> tuple[int, ...]:
    """Return the GPUs of this machine that the ranks use."""
    if settings.device == "cpu":
        return ()
    return settings.gpus or tuple(range(settings.tp_size // settings.nodes))


def _build_rank_specs(spec: ProcessSpec, config: Config) -> tuple[ProcessSpec, ...]:
    """Return the ranks of every other machine, each behind a proxy that waits for it."""
    host, port = parse_dist_init_addr(config)
    cluster = build_cluster_settings(config)
    ranks = []
    for rank in range(1, config.thinker.nodes):
        name = f"{spec.name}-node-{rank}"
        settings = RemoteSettings(
            name=name,
            node=f"machine {rank}",
            cluster=cluster,
            env={},
            settings=replace(spec.settings, node_rank=rank),
            listen=RankAddress(host, port + rank, rank),
        )
        ranks.append(
            replace(
                spec,
                name=name,
                factory=SGLANG_RANKS,
                settings=settings,
                env={},
                module=PROXY_MODULE,
                node=settings.node,
            )
        )
    return tuple(ranks)


def parse_dist_init_addr(config: Config) -> tuple[str, int]:
    """Return the address and the port where the thinker's ranks meet.

    Raises:
        ConfigError: `thinker.dist_init_addr` is unset, or is not HOST:PORT.
    """
    path, text = "thinker.dist_init_addr", config.thinker.dist_init_addr or ""
    host, _, port = text.rpartition(":")
    last = 65_535 - config.thinker.nodes
    if not host or not port.isdecimal() or not 0 < int(port) <= last:
        raise make_option_error(
            path, f"{path} must be HOST:PORT with thinker.nodes above 1, not {text!r}"
        )
    return host.strip("[]"), int(port)
