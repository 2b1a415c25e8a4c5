"""Creates pools of which a part runs only when it is needed, and their autoscalers."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.autoscaler import Autoscaler
from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.engines.runtime.scaling_policy import ScalingRules
from sglang_omni.serving.image_config import resolve_min_replicas

# The section of the option of each engine. On a CPU one encoder has the place of the image encoder.
SECTIONS = {
    "talker": "talker",
    "encoders": "image_encoder",
    "image_encoder": "image_encoder",
    "audio_encoder": "audio_encoder",
    "image": "image",
}


def create_pool(config: Config, specs: Sequence[ProcessSpec]) -> EnginePool:
    """Return the pool of an engine, without starting it.

    Raises:
        ConfigError: More replicas are always to run than there are.
    """
    section = SECTIONS.get(specs[0].kind)
    if section is None:
        return EnginePool(specs)
    if specs[0].kind == "encoders":
        _require_unset(config)
    min_replicas = _get_min_replicas(config, section)
    if min_replicas is not None and min_replicas > len(specs):
        raise make_option_error(
            f"{section}.min_replicas",
            f"{section}.min_replicas is {min_replicas}, and {section} has {len(specs)} replicas; "
            "name a place for each",
        )
    return EnginePool(specs, min_replicas)


def _get_min_replicas(config: Config, section: str) -> int | None:
    """Return how many replicas of an engine always run, None for all."""
    if section == "image":
        return resolve_min_replicas(config)
    min_replicas: int | None = getattr(config, section).min_replicas
    return min_replicas


def _require_unset(config: Config) -> None:
    if config.audio_encoder.min_replicas is not None:
        raise make_option_error(
            "audio_encoder.min_replicas",
            "audio_encoder.min_replicas: on a CPU one engine encodes both; set "
            "image_encoder.min_replicas",
        )


class Autoscalers:
    """The autoscalers of all pools of which a part runs only when it is needed."""

    def __init__(
        self,
        config: Config,
        pools: Iterable[EnginePool],
        get_counters: Callable[[], Mapping[str, Mapping[str, float]]],
    ) -> None:
        """Create them without starting them.

        Args:
            config: The server's configuration.
            pools: All pools.
            get_counters: Returns the counters of the admission queues by the kind of the engine.
        """
        self._autoscalers = [
            _create_autoscaler(config, pool, get_counters)
            for pool in pools
            if pool.min_replicas < len(pool.replicas)
        ]

    def start(self) -> None:
        """Begin to look at the load of the pools, which have started."""
        for autoscaler in self._autoscalers:
            autoscaler.start()

    async def stop(self) -> None:
        """End. The pools must be stopped afterwards."""
        await asyncio.gather(*(autoscaler.stop() for autoscaler in self._autoscalers))


def _create_autoscaler(
    config: Config,
    pool: EnginePool,
    get_counters: Callable[[], Mapping[str, Mapping[str, float]]],
) -> Autoscaler:
    options, kind = config.autoscaling, pool.replicas[0].spec.kind
    rules = ScalingRules(
        pool.min_replicas,
        len(pool.replicas),
        options.upscale_delay_s,
        options.downscale_delay_s,
    )
    return Autoscaler(pool, rules, lambda: get_counters().get(kind, {}))
