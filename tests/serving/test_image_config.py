"""Whether a server draws images, and with what settings."""

from dataclasses import replace

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.shared_count import SharedCount
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.protocol.errors import ConfigError
from sglang_omni.serving.image_config import (
    build_image_specs,
    draws_images,
    explain_no_images,
    resolve_min_replicas,
)
from tests.testing.golden import TINY

DRAWS = replace(RELEASED, image_output=True)


def config(**values: object) -> Config:
    return load_config(None, {name.replace("__", "."): value for name, value in values.items()})


def test_images_are_drawn_where_the_checkpoint_can_and_the_server_takes_media() -> None:
    assert draws_images(config(device="cpu"), DRAWS)
    assert not draws_images(config(device="cpu"), RELEASED)
    assert not draws_images(config(device="cpu", text_only=True), DRAWS)
    assert not draws_images(config(device="cpu", image__enabled="never"), DRAWS)
    assert draws_images(config(text_only=True, image__enabled="always"), DRAWS)


def test_a_gpu_is_only_used_where_it_was_given() -> None:
    assert not draws_images(config(device="cuda"), DRAWS)
    assert draws_images(config(device="cuda", image__gpus="0"), DRAWS)
    assert draws_images(config(device="cuda", image__device="cpu"), DRAWS)
    assert draws_images(config(device="cuda", image__enabled="always"), DRAWS)


def test_what_would_draw_images_is_told() -> None:
    assert "start the server with --image.enabled always" in explain_no_images(DRAWS, "Ming")
    assert explain_no_images(RELEASED, "Ming").endswith("serve one that has one, such as Ming")
    assert explain_no_images(RELEASED, None).endswith("serve one that has one")


def test_required_images_that_the_checkpoint_lacks_end_the_start() -> None:
    with pytest.raises(ConfigError, match="the folders mlp, connector") as error:
        draws_images(config(image__enabled="always"), RELEASED)
    assert error.value.param == "image.enabled"


def test_there_is_a_replica_for_each_gpu_and_one_on_a_cpu() -> None:
    (alone,) = build_image_specs(config(device="cpu", image__max_images=5), TINY)
    assert (alone.settings.device, alone.settings.dtype) == ("cpu", "float32")
    assert alone.settings.max_images == 5
    assert alone.env == {"OMP_NUM_THREADS": str(alone.settings.threads)}
    asked = config(device="cuda", image__gpus="1,3", image__max_batch_size=2, image__fp8=True)
    first, second = build_image_specs(asked, TINY)
    assert (first.settings.device, second.settings.device) == ("cuda:1", "cuda:3")
    assert (first.name, second.name, second.kind) == ("image", "image-1", "image")
    assert first.settings.dtype == "bfloat16"
    assert first.settings.max_batch_size == 2
    assert (first.settings.backend, first.settings.fp8) == ("auto", True)
    assert (alone.settings.backend, alone.settings.fp8) == ("auto", False)
    assert first.env == {
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
        "CUDA_MPS_CLIENT_PRIORITY": "1",
    }


def test_the_device_and_the_type_may_differ_from_the_other_engines() -> None:
    asked = config(device="cuda", image__device="cpu", image__dtype="float32")
    (spec,) = build_image_specs(asked, TINY)
    assert (spec.settings.device, spec.settings.dtype) == ("cpu", "float32")


def test_on_a_cpu_the_engine_waits_for_its_first_request() -> None:
    def count(**values: object) -> int | None:
        return resolve_min_replicas(config(**values))

    assert count(device="cpu") == 0
    assert count(device="cuda", image__device="cpu") == 0
    assert count(device="cuda", image__gpus="0,1") is None
    assert count(device="cpu", image__min_replicas="1") == 1
    assert count(device="cuda", image__min_replicas="0") == 0


def test_a_long_step_does_not_make_the_engine_unready() -> None:
    (spec,) = build_image_specs(config(device="cpu", image__step_deadline_s=40), TINY)
    assert spec.unready_after_s == 20


@pytest.mark.parametrize(
    ("options", "gives_way"),
    [
        ({"device": "cpu"}, [True]),
        ({"device": "cuda"}, [True]),
        ({"device": "cuda", "image__gpus": "1"}, [False]),
        ({"device": "cuda", "image__gpus": "1,2", "talker__gpus": "2"}, [False, True]),
        ({"device": "cuda", "image__gpus": "1,2", "thinker__tp_size": 2}, [True, False]),
        ({"device": "cuda", "image__gpus": "3,0", "thinker__gpus": "3"}, [True, True]),
        ({"device": "cuda", "image__place": "local:1,local:0"}, [False, True]),
        ({"device": "cuda", "image__device": "cpu"}, [False]),
    ],
)
def test_images_give_way_where_answers_share_their_device(
    options: dict[str, object], gives_way: list[bool]
) -> None:
    waiting = SharedCount()
    specs = build_image_specs(config(**options, image__rest=0.5), TINY, waiting)
    assert [spec.settings.waiting is waiting for spec in specs] == gives_way
    assert {spec.settings.rest for spec in specs} == {0.5}
