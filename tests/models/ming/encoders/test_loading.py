"""The encoders load strictly: what is missing, unknown or misshapen is named."""

import pytest
import torch
from torch import Tensor, nn

from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.config import EncoderConfig, parse_encoder_config, read_encoder_config
from sglang_omni.models.ming.encoders.audio import AudioEncoder
from sglang_omni.models.ming.encoders.loading import (
    WeightFiller,
    build_audio_filler,
    build_vision_filler,
)
from sglang_omni.models.ming.encoders.tensors import (
    list_audio_tensors,
    list_vision_tensors,
    strip_encoder_prefix,
)
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY


@pytest.fixture(scope="module")
def config() -> EncoderConfig:
    return read_encoder_config(TINY)


@pytest.fixture(scope="module")
def stored() -> dict[str, Tensor]:
    folder = TensorFolder(TINY)
    return {name: folder[name] for name in folder if strip_encoder_prefix(name)}


def fill(filler: WeightFiller, tensors: dict[str, Tensor]) -> tuple[str, ...]:
    for name, tensor in tensors.items():
        if filler.accepts(name):
            filler.fill(name, tensor)
    return filler.finish().ignored


def test_every_encoder_tensor_of_the_checkpoint_is_known(
    config: EncoderConfig, stored: dict[str, Tensor]
) -> None:
    known = list_vision_tensors(config.vision, config.hidden_size)
    known |= list_audio_tensors(config.audio, config.hidden_size)
    assert known == {name: tuple(tensor.shape) for name, tensor in stored.items()}


def test_deepstack_mergers_are_recognised_and_left_out(
    serving: nn.Module, config: EncoderConfig, stored: dict[str, Tensor]
) -> None:
    ignored = fill(build_vision_filler(serving, config), stored)
    assert len(ignored) == 3 * 6
    assert all(name.startswith("vision.deepstack_merger_list.") for name in ignored)


def test_a_leading_model_prefix_is_taken_off(
    audio: AudioEncoder, config: EncoderConfig, stored: dict[str, Tensor]
) -> None:
    prefixed = {f"model.{name}": tensor for name, tensor in stored.items()}
    assert fill(build_audio_filler(audio, config), prefixed) == ()
    assert strip_encoder_prefix("model.model.norm.weight") is None


@pytest.mark.parametrize(
    "name",
    ["audio.positional_embedding", "audio.blocks.1.attn.key.weight", "linear_proj_audio.0.bias"],
)
def test_a_missing_tensor_is_named(
    name: str, audio: AudioEncoder, config: EncoderConfig, stored: dict[str, Tensor]
) -> None:
    rest = {other: tensor for other, tensor in stored.items() if other != name}
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        fill(build_audio_filler(audio, config), rest)


@pytest.mark.parametrize(
    "name", ["vision.merger.norm.bias", "vision.deepstack_merger_list.2.norm.bias"]
)
def test_a_tensor_missing_from_the_vision_encoder_is_named(
    name: str, serving: nn.Module, config: EncoderConfig, stored: dict[str, Tensor]
) -> None:
    rest = {other: tensor for other, tensor in stored.items() if other != name}
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        fill(build_vision_filler(serving, config), rest)


def test_a_wrong_shape_is_named(
    serving: nn.Module, config: EncoderConfig, stored: dict[str, Tensor]
) -> None:
    name = "vision.blocks.0.attn.qkv.weight"
    with pytest.raises(CheckpointError, match=r"attn\.qkv\.weight.*\[3, 3\]"):
        fill(build_vision_filler(serving, config), stored | {name: torch.zeros(3, 3)})


def test_an_unknown_tensor_is_named(
    audio: AudioEncoder, config: EncoderConfig, stored: dict[str, Tensor]
) -> None:
    with pytest.raises(CheckpointError, match=r"audio\.extra"):
        fill(build_audio_filler(audio, config), stored | {"audio.extra": torch.zeros(1)})


@pytest.mark.parametrize(
    ("section", "key"),
    [("vision_config", "depth"), ("audio_config", "ds_stride"), ("llm_config", "hidden_size")],
)
def test_a_missing_key_is_named(section: str, key: str) -> None:
    values = read_json(TINY / "config.json")
    values[section] = {name: value for name, value in values[section].items() if name != key}
    with pytest.raises(CheckpointError, match=key):
        parse_encoder_config(values, "config.json")


@pytest.mark.parametrize(
    ("section", "key"), [("vision_config", "hidden_act"), ("audio_config", "ds_kernel_size")]
)
def test_a_value_that_is_not_built_is_refused(section: str, key: str) -> None:
    values = read_json(TINY / "config.json")
    values[section] |= {key: "other"}
    with pytest.raises(CheckpointError, match=key):
        parse_encoder_config(values, "config.json")
