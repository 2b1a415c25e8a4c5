"""The noise levels (sigmas) of the steps, as the scheduler file of the checkpoint says."""

from pathlib import Path
from typing import Any

from torch import Tensor

from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.image.config import SCHEDULER
from sglang_omni.models.ming.image.sizes import Size
from sglang_omni.protocol.errors import CheckpointError

# Where the file asks for dynamic shifting, the shift grows with the number of image tokens.
BASE_SHIFT, MAX_SHIFT, BASE_TOKENS, MAX_TOKENS = 0.5, 1.15, 256, 4096
CLASS_NAME = "FlowMatchEulerDiscreteScheduler"


def read_scheduler_config(checkpoint: Path) -> dict[str, Any]:
    """Read `scheduler/scheduler_config.json`. Raises `CheckpointError`."""
    path = checkpoint / SCHEDULER / "scheduler_config.json"
    values: dict[str, Any] = read_json(path)
    if values.get("_class_name") != CLASS_NAME:
        raise CheckpointError(f"{path}: _class_name must be {CLASS_NAME}")
    return values


def compute_sigmas(config: dict[str, Any], steps: int, latent: Size) -> Tensor:
    """Return float32 [steps + 1], from 1 down to 0.

    With more than one step the last two are 0, so that the last step has no effect.

    Args:
        config: The scheduler file.
        steps: Number of steps.
        latent: Height and width of the latents; they matter with dynamic shifting only.
    """
    from diffusers import FlowMatchEulerDiscreteScheduler

    scheduler: Any = FlowMatchEulerDiscreteScheduler
    scheduler = scheduler.from_config(config)
    scheduler.sigma_min = 0.0
    tokens = latent[0] // 2 * (latent[1] // 2)
    slope = (MAX_SHIFT - BASE_SHIFT) / (MAX_TOKENS - BASE_TOKENS)
    scheduler.set_timesteps(steps, mu=BASE_SHIFT + (tokens - BASE_TOKENS) * slope)
    return scheduler.sigmas
