"""The plain thinker over prompts of text, with the weights of one layer in memory at a time.

The experts of a layer are read one by one, so that memory depends on the number of tokens and not
on the size of the model. Products are in float32.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.thinker.reference import ReferenceLayer
from sglang_omni.models.ming.thinker.rope import (
    assign_frequency_axes,
    compute_inverse_frequencies,
    compute_rotary_tables,
)
from sglang_omni.models.ming.thinker.routing import TEXT
from sglang_omni.protocol.errors import CheckpointError

MAX_ROWS = 8192
"""Tokens to process at once, beside attention."""
EXPERTS = "mlp.experts."
SHARED = "mlp.shared_experts."


@dataclass(frozen=True)
class Expert:
    """The float32 matrices of one expert, each [rows, columns]."""

    gate: Tensor
    up: Tensor
    down: Tensor

    def activate(self, x: Tensor) -> Tensor:
        """Return the inputs of `down`, [tokens, width], of rows x [tokens, hidden]."""
        return F.silu(F.linear(x, self.gate)) * F.linear(x, self.up)

    def run(self, x: Tensor) -> Tensor:
        """Return the outputs of rows x [tokens, hidden]."""
        return F.linear(self.activate(x), self.down)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Expert":
        """Return the expert with changed matrices."""
        return Expert(change(self.gate), change(self.up), change(self.down))


@dataclass(frozen=True)
class ExpertTokens:
    """The tokens of one expert: its name, their places int64 [n], and weights float32 [n, 1]."""

    expert: str
    places: Tensor
    weights: Tensor

    def add_outputs(self, total: Tensor, expert: Expert, inputs: Tensor) -> None:
        """Add the outputs of the expert for inputs [n, hidden] to a sum [tokens, hidden]."""
        parts = (part.split(MAX_ROWS) for part in (self.places, self.weights, inputs))
        for places, weights, rows in zip(*parts, strict=True):
            total.index_add_(0, places, expert.run(rows) * weights)


def layer_prefix(index: int) -> str:
    """Return the beginning of the names of a layer's tensors."""
    return f"model.model.layers.{index}."


def load_layer(
    tensors: Mapping[str, Tensor], config: Any, index: int, device: torch.device
) -> ReferenceLayer:
    """Load a layer in float32, without the weights of its experts.

    Raises:
        CheckpointError: A tensor is missing or has the wrong shape.
    """
    with torch.device("meta"):
        layer = ReferenceLayer(config, index).eval().requires_grad_(False)
    loaded: dict[str, Tensor] = {}
    for name, expected in layer.state_dict().items():
        if name.startswith((EXPERTS, SHARED)):
            continue
        tensor = tensors[layer_prefix(index) + name]
        if tensor.shape != expected.shape:
            raise CheckpointError(
                f"tensor {layer_prefix(index) + name!r} has shape {list(tensor.shape)}; "
                f"expected {list(expected.shape)}"
            )
        loaded[name] = tensor.to(device, torch.float32)
    layer.load_state_dict(loaded, strict=False, assign=True)
    return layer


def load_expert(tensors: Mapping[str, Tensor], stem: str, device: torch.device) -> Expert:
    """Load the expert whose names begin with `stem`. Raises `CheckpointError` if one is missing."""
    gate, up, down = (
        tensors[f"{stem}{part}_proj.weight"].to(device, torch.float32)
        for part in ("gate", "up", "down")
    )
    return Expert(gate, up, down)


class PromptStates:
    """The hidden states of some prompts of text, between two layers."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        config: Any,
        prompts: Sequence[Sequence[int]],
        device: torch.device,
    ) -> None:
        """Embed the prompts. Raises `CheckpointError` if the embeddings are missing."""
        ids = torch.tensor([token for prompt in prompts for token in prompt])
        embeddings = tensors["model.model.word_embeddings.weight"]
        self._states = embeddings[ids].to(device, torch.float32)
        self._lengths = [len(prompt) for prompt in prompts]
        rope = config.rope_parameters
        self._frequencies = compute_inverse_frequencies(config.rotary_dim, rope["rope_theta"])
        self._axes = torch.tensor(assign_frequency_axes(rope["mrope_section"]))

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self._states)

    def attend(self, layer: ReferenceLayer) -> None:
        """Add what a layer's attention computes, one prompt at a time."""
        positions = torch.arange(max(self._lengths)).expand(3, -1)
        tables = [
            table.to(self._states.device)
            for table in compute_rotary_tables(positions, self._frequencies, self._axes)
        ]
        for states in self._states.split(self._lengths):
            cos, sin = (table[: len(states)] for table in tables)
            states += layer.attention(layer.input_layernorm(states), (cos, sin), [])

    def add_dense(self, layer: ReferenceLayer) -> None:
        """Add what the MLP of a dense layer computes."""
        for states in self._states.split(MAX_ROWS):
            states += layer.mlp(layer.post_attention_layernorm(states))

    def add(self, outputs: Tensor) -> None:
        """Add the summed outputs [tokens, hidden] of a layer's experts."""
        self._states += outputs

    def zeros(self) -> Tensor:
        """Return a sum [tokens, hidden] to which nothing is added yet."""
        return torch.zeros_like(self._states)

    def normalize(self, layer: ReferenceLayer, places: Tensor) -> Tensor:
        """Return the inputs [n, hidden] of the experts for the tokens at some places."""
        inputs = self._states.new_empty(len(places), self._states.shape[1])
        for rows, part in zip(places.split(MAX_ROWS), inputs.split(MAX_ROWS), strict=True):
            part.copy_(layer.post_attention_layernorm(self._states[rows]))
        return inputs

    def route(self, layer: ReferenceLayer) -> Iterator[ExpertTokens]:
        """Yield the tokens of each routed expert, and then those of the shared one: all."""
        sparse: Any = layer.mlp
        places = torch.arange(len(self), device=self._states.device)
        chosen = [
            sparse.select_experts(self.normalize(layer, rows), torch.full_like(rows, TEXT))
            for rows in places.split(MAX_ROWS)
        ]
        weights, ids = (torch.cat(part) for part in zip(*chosen, strict=True))
        for index in range(len(sparse.experts)):
            tokens, slots = (ids == index).nonzero(as_tuple=True)
            yield ExpertTokens(f"{EXPERTS}{index}.", tokens, weights[tokens, slots, None])
        yield ExpertTokens(SHARED, places, weights.new_ones(len(self), 1))
