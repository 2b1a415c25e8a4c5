"""Options of autoscaling."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Number, Seconds


@dataclass(frozen=True, config=OPTION_CONFIG)
class AutoscalingOptions:
    """Options of autoscaling, for the engines with `min_replicas`."""

    upscale_delay_s: Seconds = 5.0
    """Seconds that requests must wait, or be rejected again and again, before replicas start."""

    downscale_delay_s: Annotated[Number, Field(ge=1)] = 300.0
    """Seconds for which fewer replicas must be enough before the others stop."""
