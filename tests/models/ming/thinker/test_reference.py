"""The plain thinker reproduces the released model's hidden states, routing and tokens."""

import pytest
import torch

from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import (
    ReferenceLayer,
    ReferenceSparseMLP,
    ThinkerReference,
    load_reference,
)
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE
from tests.models.ming.thinker.prompts import embeddings, position_table, routes
from tests.testing.golden import TINY, Case, cases, load_case

PREFILLS = cases("thinker", "text_") + cases("thinker", "mm_", required=False)
GREEDY = cases("thinker", "greedy_")


@pytest.fixture(scope="module")
def config() -> MingConfig:
    return MingConfig.from_pretrained(TINY)


@pytest.fixture(scope="module")
def model(config: MingConfig) -> ThinkerReference:
    return load_reference(TINY, config.llm_config)


@pytest.mark.parametrize("name", PREFILLS)
@torch.no_grad()
def test_prefill_agrees_at_every_layer(
    name: str, config: MingConfig, model: ThinkerReference
) -> None:
    case = load_case(name)
    table, delta = position_table(case, config)
    chosen = routes(case, config)
    x = embeddings(case, config, model.model.word_embeddings)
    with LayerTrace(model, case.info["traced_layer"]) as trace:
        logits = model(x, table, chosen)
    actual = {
        "position_ids": table,
        "rope_delta": torch.tensor([delta]),
        "image_router_mask": (chosen == IMAGE).long(),
        "audio_router_mask": (chosen == AUDIO).long(),
        "inputs_embeds": x,
        "logits": logits,
        "hidden_states": torch.stack(trace.hidden),
        "final_hidden": trace.hidden[-1],
        "router_input": trace.router_input,
        **sorted_routing(*trace.selection),
    }
    for tensor in expected(case):
        case.check(tensor, actual[tensor])


@pytest.mark.parametrize("name", GREEDY)
@torch.no_grad()
def test_greedy_tokens_agree_with_a_cache(
    name: str, config: MingConfig, model: ThinkerReference
) -> None:
    case = load_case(name)
    table, delta = position_table(case, config)
    keys, generated, steps = model.new_cache(), [], []
    x, chosen = embeddings(case, config, model.model.word_embeddings), routes(case, config)
    length = len(case["input_ids"])
    for _ in range(len(case["generated_ids"])):
        steps.append(model(x, table, chosen, keys)[-1])
        generated.append(int(steps[-1].argmax()))
        x = model.model.word_embeddings(torch.tensor(generated[-1:]))
        table = torch.full((3, 1), length + delta)
        chosen = torch.zeros(1, dtype=torch.long)
        length += 1
    assert generated == case["generated_ids"].tolist()
    case.check("step_logits", torch.stack(steps))


def test_the_reference_is_differentiable(config: MingConfig, model: ThinkerReference) -> None:
    case = load_case(PREFILLS[0])
    table, _ = position_table(case, config)
    x = embeddings(case, config, model.model.word_embeddings)
    model(x, table, routes(case, config)).sum().backward()
    gradient = sparse_mlp(model, 1).gate.weight.grad
    assert gradient is not None
    assert gradient.abs().sum() > 0
    model.zero_grad()


def sparse_mlp(model: ThinkerReference, layer: int) -> ReferenceSparseMLP:
    block = model.model.layers[layer]
    assert isinstance(block, ReferenceLayer)
    assert isinstance(block.mlp, ReferenceSparseMLP)
    return block.mlp


def expected(case: Case) -> list[str]:
    """Names of the tensors that a case asks to reproduce."""
    return [name for name, info in case.info["tensors"].items() if info["role"] == "expected"]


def sorted_routing(weights: torch.Tensor, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Ids and combine weights, sorted by id as the goldens store them."""
    order = ids.argsort(dim=-1)
    return {
        "router_topk_ids": ids.gather(-1, order),
        "router_topk_weights": weights.gather(-1, order),
    }


class LayerTrace:
    """Records layer outputs, and the router's input and choice in one layer."""

    def __init__(self, model: ThinkerReference, traced_layer: int) -> None:
        self.hidden: list[torch.Tensor] = []
        self._decoder, self._mlp = model.model, sparse_mlp(model, traced_layer)
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> "LayerTrace":
        layers = self._decoder.layers
        record = [layer.register_forward_pre_hook(self._input) for layer in layers]
        final = self._decoder.norm.register_forward_hook(self._final)
        self._hooks = [*record, final, self._mlp.register_forward_pre_hook(self._routing)]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _input(self, _: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        self.hidden.append(args[0])

    def _final(self, _: torch.nn.Module, __: object, output: torch.Tensor) -> None:
        self.hidden.append(output)

    def _routing(self, _: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        self.router_input = args[0]
        self.selection = self._mlp.select_experts(*args)
