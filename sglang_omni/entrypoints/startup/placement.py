"""Chooses the GPUs of the engines before they start."""

from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import list_visible_gpus
from sglang_omni.models.registry import family_of
from sglang_omni.placement.place import check_thinker_fits, format_plan, place_engines
from sglang_omni.serving.engine_config import resolve_device


def apply_placement(config: Config, checkpoint: Path) -> tuple[Config, str]:
    """Assign GPUs to every engine.

    Returns:
        The configuration with the assignment, and the plan as text. On a CPU, and with manual
        placement, the configuration is unchanged and the text is empty.

    Raises:
        StartupError: The checkpoint does not fit the GPUs.
    """
    if resolve_device(config.device) == "cpu":
        return config, ""
    sizes, found = family_of(checkpoint).sizes(checkpoint), list_visible_gpus()
    if config.placement == "manual":
        check_thinker_fits(config, sizes, found)
        return config, ""
    config, plan = place_engines(config, sizes, found)
    return config, format_plan(plan, found)
