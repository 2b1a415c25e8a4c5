"""Which engines a server has besides those for media and images."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.serving.engine_config import build_talker_specs
from sglang_omni.serving.thinker_config import build_thinker_spec

BuildEngineSpecs = Callable[[Config, Path, Mapping[str, str]], Mapping[str, Sequence[ProcessSpec]]]


def build_engine_specs(
    config: Config, checkpoint: Path, env: Mapping[str, str]
) -> dict[str, tuple[ProcessSpec, ...]]:
    """Return the replicas of the thinker (`env` extends its environment) and of the talker."""
    return {
        "thinker": (build_thinker_spec(config, checkpoint, env),),
        "talker": build_talker_specs(config, checkpoint),
    }
