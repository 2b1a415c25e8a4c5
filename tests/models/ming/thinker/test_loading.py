"""The thinker loads strictly: what is missing, unknown or misshapen is named."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.hf_config import MingConfig, MingTextConfig
from sglang_omni.models.ming.thinker.loading import Destination, find_destination, load_thinker
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, list_thinker_tensors
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY

LAYER = "model.model.layers.1."


@pytest.fixture(scope="module")
def config() -> MingTextConfig:
    return MingConfig.from_pretrained(TINY).llm_config


@pytest.fixture(scope="module")
def stored() -> dict[str, Tensor]:
    return dict(TensorFolder(TINY).items())


class Recorder(nn.Module):
    """Parameters of the SGLang model by name only; counts what each is given."""

    def __init__(self, config: MingTextConfig) -> None:
        super().__init__()
        self.filled: list[Destination] = []
        self.experts = config.num_experts
        self.routers: dict[str, nn.Parameter] = {}
        for name, shape in list_thinker_tensors(config).items():
            target = find_destination(name, config.num_experts)
            if target.router is not None:
                self.routers.setdefault(target.parameter, nn.Parameter(torch.zeros(3, *shape)))

    def named_parameters(self, *_: object, **__: object) -> Iterator[tuple[str, nn.Parameter]]:
        yield from self.routers.items()
        for target in {find_destination(name, self.experts) for name in self.names}:
            if target.router is None:
                yield target.parameter, self._recording(target.parameter)

    names: tuple[str, ...] = ()

    def _recording(self, parameter: str) -> nn.Parameter:
        blank: Any = nn.Parameter(torch.empty(0))

        def fill(_: nn.Parameter, __: Tensor, shard: Any = None, **keys: Any) -> None:
            expert = keys.get("expert_id")
            self.filled.append(Destination(parameter, keys.get("shard_id", shard), expert))

        blank.weight_loader = fill
        return blank


def recorder(config: MingTextConfig) -> Recorder:
    model = Recorder(config)
    model.names = tuple(list_thinker_tensors(config))
    return model


def test_every_tensor_of_the_checkpoint_is_the_thinkers_or_an_encoders(
    config: MingTextConfig, stored: dict[str, Tensor]
) -> None:
    thinker = {name: tuple(t.shape) for name, t in stored.items() if not is_encoder_tensor(name)}
    assert thinker == list_thinker_tensors(config)


def test_every_part_lands_once(config: MingTextConfig, stored: dict[str, Tensor]) -> None:
    model = recorder(config)
    load_thinker(model, config, stored.items())
    wanted = [find_destination(name, config.num_experts) for name in list_thinker_tensors(config)]
    assert sorted(map(repr, model.filled)) == sorted(repr(t) for t in wanted if t.router is None)
    for row, name in enumerate(("gate", "image_gate", "audio_gate")):
        router = model.routers[f"{LAYER}mlp.router.weight"]
        assert torch.equal(router[row], stored[f"{LAYER}mlp.{name}.weight"].float())


@pytest.mark.parametrize(
    "name",
    [
        "model.lm_head.weight",
        "model.model.layers.0.mlp.up_proj.weight",
        LAYER + "mlp.experts.3.gate_proj.weight",
        LAYER + "mlp.audio_gate.expert_bias",
        LAYER + "attention.query_key_value.weight",
    ],
)
def test_a_missing_tensor_or_half_of_a_pair_is_named(
    name: str, config: MingTextConfig, stored: dict[str, Tensor]
) -> None:
    rest = {other: tensor for other, tensor in stored.items() if other != name}
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        load_thinker(recorder(config), config, rest.items())


def test_an_unknown_tensor_is_named(config: MingTextConfig, stored: dict[str, Tensor]) -> None:
    weights = stored | {LAYER + "mlp.extra_gate.weight": torch.zeros(1)}
    with pytest.raises(CheckpointError, match="extra_gate"):
        load_thinker(recorder(config), config, weights.items())


def test_a_wrong_shape_is_named(config: MingTextConfig, stored: dict[str, Tensor]) -> None:
    name = LAYER + "attention.dense.weight"
    with pytest.raises(CheckpointError, match=r"attention\.dense"):
        load_thinker(recorder(config), config, (stored | {name: torch.zeros(2, 2)}).items())


def test_what_is_read_and_what_is_left_out_is_listed(
    config: MingTextConfig, stored: dict[str, Tensor], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        load_thinker(recorder(config), config, stored.items())
    read, *listed = [record.getMessage() for record in caplog.records]
    num_bytes = sum(tensor.nbytes for name, tensor in stored.items() if not is_encoder_tensor(name))
    assert read == f"thinker: read {num_bytes / 1e9:.3f} GB of weights"
    assert [line.rsplit(" ", 1)[-1] for line in listed] == [
        "audio",
        "linear_proj",
        "linear_proj_audio",
        "vision",
    ]


def test_an_optional_prefix_does_not_hide_an_encoder() -> None:
    assert is_encoder_tensor("model.vision.blocks.0.norm1.weight")
    assert is_encoder_tensor("linear_proj_audio.0.weight")
    assert not is_encoder_tensor("model.model.norm.weight")
