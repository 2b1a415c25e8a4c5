"""Which replicas always run, by the options."""

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.protocol.errors import ConfigError
from sglang_omni.serving.autoscaling import create_pool
from sglang_omni.serving.engine_config import build_encoder_specs, build_talker_specs
from sglang_omni.serving.media_engines import MediaEngines
from tests.testing.golden import TINY


def talkers(**values: object) -> EnginePool:
    options = {name.replace("__", "."): value for name, value in values.items()}
    config = load_config(None, {"device": "cpu", **options})
    return create_pool(config, build_talker_specs(config, TINY))


def states(pool: EnginePool) -> list[str]:
    return [replica.health.state for replica in pool.replicas]


@pytest.mark.parametrize(
    "places", [{"talker__place": "local,local,local"}, {"talker__replicas": "3"}]
)
def test_the_first_replicas_always_run(places: dict[str, object]) -> None:
    pool = talkers(**places, talker__min_replicas="2")
    assert states(pool) == ["stopped", "stopped", "standby"]
    assert [replica.is_autoscaled for replica in pool.replicas] == [False, False, True]
    assert states(talkers(**places)) == ["stopped"] * 3


def test_each_encoder_has_its_own_minimum() -> None:
    config = load_config(
        None,
        {
            "device": "cuda",
            "image_encoder.gpus": "0,1,2,3",
            "image_encoder.tp_size": "2",
            "image_encoder.min_replicas": "1",
            "audio_encoder.gpus": "0,1,2",
            "audio_encoder.min_replicas": "2",
        },
    )
    specs = build_encoder_specs(config, TINY)
    assert states(create_pool(config, specs["image"])) == ["stopped", "standby"]
    assert states(create_pool(config, specs["audio"])) == ["stopped", "stopped", "standby"]


def test_on_a_cpu_the_encoder_has_the_minimum_of_the_image_encoder() -> None:
    values = {"device": "cpu", "image_encoder.place": "local,local"}
    config = load_config(None, {**values, "image_encoder.min_replicas": "1"})
    assert states(MediaEngines(config, TINY).pools["encoders"]) == ["stopped", "standby"]
    config = load_config(None, {**values, "audio_encoder.min_replicas": "1"})
    with pytest.raises(ConfigError, match=r"set image_encoder\.min_replicas"):
        MediaEngines(config, TINY)


def test_a_minimum_of_more_than_there_are_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"talker\.min_replicas is 3, and talker has 2 replicas"):
        talkers(talker__place="local,local", talker__min_replicas="3")
