"""Whether groups of ranks can share the thinker's routed experts. Does not import torch."""

from pathlib import Path

from sglang_omni.models.checkpoint_files import QUANTIZATION_KEY
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.thinker.int4.layout import is_int4
from sglang_omni.models.ming.thinker.int4.published_configs import rewrite_quantization
from sglang_omni.protocol.errors import CheckpointError, ConfigError


def check_expert_ranks(checkpoint: Path, ep_size: int) -> None:
    """Check that `ep_size` groups of ranks can share the experts of a checkpoint.

    Raises:
        CheckpointError: The configuration is missing or malformed.
        ConfigError: The experts are not a multiple of the groups, or are in four bits.
    """
    if ep_size == 1:
        return
    config = read_json(checkpoint / "config.json")
    if is_int4(rewrite_quantization(config.get(QUANTIZATION_KEY), None)):
        raise ConfigError(
            "thinker.ep_size: experts in four bits do not support expert parallelism; use "
            "thinker.tp_size alone"
        )
    try:
        experts = int(config["llm_config"]["num_experts"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{checkpoint}: config.json names no num_experts") from error
    if experts % ep_size:
        raise ConfigError(f"thinker.ep_size ({ep_size}) must divide the {experts} routed experts")
