"""Layer by layer, with experts one by one, the states are those of the plain model."""

import pytest
import torch

from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.layerwise import (
    PromptStates,
    layer_prefix,
    load_expert,
    load_layer,
)
from sglang_omni.models.ming.thinker.reference import load_reference
from sglang_omni.models.ming.thinker.routing import TEXT
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY

CPU = torch.device("cpu")
PROMPTS = [list(range(300, 340)), list(range(500, 507)), [600]]


@torch.no_grad()
def test_states_are_those_of_the_plain_model() -> None:
    config, tensors = MingConfig.from_pretrained(TINY).llm_config, TensorFolder(TINY)
    model = load_reference(TINY, config)
    states = PromptStates(tensors, config, PROMPTS, CPU)
    for index in range(config.num_hidden_layers):
        layer = load_layer(tensors, config, index, CPU)
        states.attend(layer)
        if not layer.sparse:
            states.add_dense(layer)
            continue
        outputs = states.zeros()
        for routed in states.route(layer):
            expert = load_expert(tensors, layer_prefix(index) + routed.expert, CPU)
            inputs = states.normalize(layer, routed.places)
            routed.add_outputs(outputs, expert, inputs)
        states.add(outputs)
    found = model.model.norm(states._states).split(list(map(len, PROMPTS)))
    for prompt, hidden in zip(PROMPTS, found, strict=True):
        x = model.model.word_embeddings(torch.tensor(prompt))
        places = torch.arange(len(prompt)).expand(3, -1)
        expected = model.model(x, places, torch.full((len(prompt),), TEXT), model.new_cache())
        torch.testing.assert_close(hidden, expected, rtol=1e-4, atol=1e-4)


def test_a_layer_is_loaded_without_its_experts() -> None:
    config, tensors = MingConfig.from_pretrained(TINY).llm_config, TensorFolder(TINY)
    index = config.first_k_dense_replace
    parameters = load_layer(tensors, config, index, CPU).state_dict()
    for name, tensor in parameters.items():
        if "experts." in name:
            assert tensor.is_meta, name
        else:
            assert torch.equal(tensor, tensors[layer_prefix(index) + name].float()), name


def test_a_tensor_of_another_shape_is_an_error() -> None:
    config, tensors = MingConfig.from_pretrained(TINY).llm_config, dict(TensorFolder(TINY))
    name = layer_prefix(0) + "attention.dense.weight"
    with pytest.raises(CheckpointError, match=r"attention\.dense\.weight"):
        load_layer(tensors | {name: tensors[name][:1]}, config, 0, CPU)
