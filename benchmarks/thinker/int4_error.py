"""Compare the output of a layer's experts in four bits and in FP8 with bfloat16.

    python -m benchmarks.thinker.int4_error --out FILE                     # random weights
    python -m benchmarks.thinker.int4_error --checkpoint DIR --out FILE    # each layer's own

Random weights have the released shape: each token uses nine experts with drawn shares. The tokens
of a checkpoint use all experts of a layer equally. Rows are drawn from a normal distribution.
Weights are quantized as `sgl-omni quantize` does; rows are not, so that only the weights' error
counts. An error is the norm of the difference, relative to the norm of the output in bfloat16;
products are in float32.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.thinker.shapes import SHAPE
from measurement.environment import fingerprint
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight, quantize_weight
from sglang_omni.models.ming.thinker.int4.layout import GROUP, is_expert_matrix
from sglang_omni.models.ming.thinker.int4.weights import (
    CLIP_RATIOS,
    dequantize_int4,
    quantize_int4,
)
from sglang_omni.models.weights import TensorFolder

TOKENS = 32
NUM_EXPERTS = int(SHAPE["num_experts_per_tok"]) + 1
HIDDEN, WIDTH = int(SHAPE["hidden_size"]), int(SHAPE["moe_intermediate_size"])
# The standard deviation of the drawn weights, which is about that of trained ones.
WEIGHT_STD = 0.02
# Of Student's t, whose tails are heavier than those of a normal distribution.
DEGREES_OF_FREEDOM = 5.0

RoundTrip = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Expert:
    """The float32 matrices of one expert, each [rows, columns]."""

    gate: Tensor
    up: Tensor
    down: Tensor

    def run(self, x: Tensor) -> Tensor:
        """Return the outputs of rows x [tokens, hidden]."""
        return F.linear(F.silu(F.linear(x, self.gate)) * F.linear(x, self.up), self.down)

    def map(self, change: RoundTrip) -> "Expert":
        """Return the expert with changed matrices."""
        return Expert(change(self.gate), change(self.up), change(self.down))


def restore_fp8(weight: Tensor) -> Tensor:
    """Return a weight as FP8 stores it."""
    return _restore_padded(weight, lambda padded: dequantize_weight(*quantize_weight(padded)))


def restore_int4(weight: Tensor, symmetric: bool, ratios: Sequence[float] = CLIP_RATIOS) -> Tensor:
    """Return a weight as four bits store it; `ratios` are those of the search."""
    return _restore_padded(
        weight, lambda padded: dequantize_int4(quantize_int4(padded, symmetric, ratios))
    )


def _restore_padded(weight: Tensor, restore: RoundTrip) -> Tensor:
    """Restore a weight whose sizes need not be multiples of a group."""
    rows, columns = weight.shape
    padded = F.pad(weight, (0, -columns % GROUP, 0, -rows % GROUP))
    return restore(padded)[:rows, :columns]


FORMS: dict[str, RoundTrip] = {
    "fp8": restore_fp8,
    "int4": partial(restore_int4, symmetric=True),
    "int4, asymmetric": partial(restore_int4, symmetric=False),
    "int4, no search": partial(restore_int4, symmetric=True, ratios=(1.0,)),
}


def measure_layer(experts: Sequence[Expert], shares: Tensor, x: Tensor) -> dict[str, float]:
    """Return the relative error of the summed outputs in each form.

    `shares` are the experts' weights [tokens, experts].
    """
    outputs = {form: torch.zeros_like(x) for form in ("bfloat16", *FORMS)}
    for expert, share in zip(experts, shares.T[..., None], strict=True):
        outputs["bfloat16"] += share * expert.run(x)
        for form, restore in FORMS.items():
            outputs[form] += share * expert.map(restore).run(x)
    exact = outputs["bfloat16"]
    return {form: float((outputs[form] - exact).norm() / exact.norm()) for form in FORMS}


def draw_experts(draw: RoundTrip, device: str) -> list[Expert]:
    """Draw the experts of one token at the released shape, in bfloat16's numbers."""

    def matrix(rows: int, columns: int) -> Tensor:
        return (draw(torch.empty(rows, columns, device=device)) * WEIGHT_STD).bfloat16().float()

    return [
        Expert(matrix(WIDTH, HIDDEN), matrix(WIDTH, HIDDEN), matrix(HIDDEN, WIDTH))
        for _ in range(NUM_EXPERTS)
    ]


def draw_normal(blank: Tensor) -> Tensor:
    """Return numbers of a normal distribution in the shape of a tensor."""
    return torch.randn_like(blank)


def draw_heavy_tails(blank: Tensor) -> Tensor:
    """Return numbers of Student's t with the variance 1 in the shape of a tensor."""
    tails = torch.distributions.Chi2(DEGREES_OF_FREEDOM).sample(blank.shape).to(blank.device)
    drawn = torch.randn_like(blank) * (DEGREES_OF_FREEDOM / tails).sqrt()
    return drawn * ((DEGREES_OF_FREEDOM - 2) / DEGREES_OF_FREEDOM) ** 0.5


def measure_random(device: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the errors for weights of two distributions at the released shape."""
    for name, draw in (("normal", draw_normal), ("heavy tails", draw_heavy_tails)):
        x = torch.randn(TOKENS, HIDDEN, device=device)
        shares = torch.rand(TOKENS, NUM_EXPERTS, device=device)
        yield name, measure_layer(draw_experts(draw, device), shares, x)


def measure_checkpoint(folder: Path, device: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the errors of each sparse layer of a checkpoint in bfloat16."""
    stored = TensorFolder(folder)
    stems = {name.rsplit(".", 2)[0] for name in stored if is_expert_matrix(name)}
    layers: dict[str, list[str]] = {}
    for stem in sorted(stems):
        layers.setdefault(stem.split(".mlp.")[0], []).append(stem)
    for layer, names in layers.items():
        experts = [
            Expert(
                *(
                    stored[f"{name}.{part}_proj.weight"].float().to(device)
                    for part in ("gate", "up", "down")
                )
            )
            for name in names
        ]
        x = torch.randn(TOKENS, experts[0].gate.shape[1], device=device)
        shares = torch.ones(TOKENS, len(experts), device=device)
        yield layer.removeprefix("model.model."), measure_layer(experts, shares, x)


def main() -> None:
    """Print the errors as a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, help="in bfloat16; otherwise weights are drawn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    found = (
        measure_checkpoint(options.checkpoint, options.device)
        if options.checkpoint
        else measure_random(options.device)
    )
    print(f"{'relative error of the output':30s}" + "".join(f"{form:>18s}" for form in FORMS))
    errors: dict[str, dict[str, float]] = {}
    for name, layer in found:
        errors[name] = layer
        print(f"{name:30s}" + "".join(f"{layer[form]:18.4f}" for form in FORMS), flush=True)
    if options.out:
        result = {"environment": fingerprint(), "errors": errors}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
