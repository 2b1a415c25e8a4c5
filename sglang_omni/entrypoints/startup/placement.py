"""Chooses the machines and GPUs of the engines, or checks those chosen, before they start."""

import logging
import os
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.remote.node_report import NodeReport
from sglang_omni.engines.remote.survey import survey_cluster
from sglang_omni.engines.runtime.gpus import VISIBLE_DEVICES_VARIABLE, list_visible_gpus
from sglang_omni.models.registry import family_of
from sglang_omni.placement.gpu_inventory import GpuInventory, build_inventory
from sglang_omni.placement.named_places import check_nodes, format_cpu_places, read_places
from sglang_omni.placement.place import (
    check_kv_cache_gpus,
    check_manual_placement,
    check_thinker_fits,
    place_engines,
)
from sglang_omni.placement.table import format_nodes, format_plan, format_shares
from sglang_omni.serving.engine_config import resolve_device
from sglang_omni.serving.places import build_cluster_settings

LOGGER = logging.getLogger(__name__)


def apply_placement(config: Config, checkpoint: Path) -> tuple[Config, str]:
    """Assign a machine and GPUs to every engine, or check those that options name.

    With `cluster.ray_address`, all machines of the cluster are asked what they have.

    Returns:
        The configuration with the assignment, and the plan as text. On one machine, on a CPU and
        with manual placement, the configuration is unchanged and the text is empty.

    Raises:
        ConfigError: An option of the cluster is missing, or a place is malformed.
        StartupError: The checkpoint does not fit the GPUs, or a machine or GPU cannot be used.
    """
    device = resolve_device(config.device)
    if device == "cpu" and config.cluster.ray_address is None:
        return config, ""
    inventory = build_inventory(
        list_visible_gpus(),
        _survey(config, checkpoint),
        os.environ.get(VISIBLE_DEVICES_VARIABLE),
    )
    places = read_places(config, device)
    check_nodes(places, inventory)
    if device == "cpu":
        return config, _join("placement: on CPUs", *format_cpu_places(places), inventory=inventory)
    check_kv_cache_gpus(config, inventory)
    sizes = family_of(checkpoint).sizes(checkpoint)
    if config.placement == "auto":
        config, plan = place_engines(config, sizes, inventory)
        return config, "\n".join([format_plan(plan, inventory), *format_cpu_places(places)])
    check_thinker_fits(config, sizes, inventory)
    if not inventory.reports:
        return config, ""
    shares = check_manual_placement(config, sizes, inventory)
    table = (*format_shares(shares, inventory), *format_cpu_places(places))
    return config, _join("placement: by hand; in GB", *table, inventory=inventory)


def _survey(config: Config, checkpoint: Path) -> tuple[NodeReport, ...]:
    """Return what the machines of the cluster have; none without a cluster."""
    address = config.cluster.ray_address
    if address is None:
        return ()
    tls = build_cluster_settings(config).tls
    # Engines get the checkpoint by its path, so it is checked as they will see it.
    paths = (checkpoint.absolute(), tls.ca, tls.certificate, tls.key)
    LOGGER.info("asking the machines of the cluster at %s what they have", address)
    return survey_cluster(address, paths)


def _join(*lines: str, inventory: GpuInventory) -> str:
    return "\n".join([*lines, *format_nodes(inventory)])
