"""Compare the output of a layer's experts in four bits and in FP8 with bfloat16.

    python -m benchmarks.thinker.int4_error --out FILE                     # random weights
    python -m benchmarks.thinker.int4_error --checkpoint DIR --out FILE    # each layer's own
    python -m benchmarks.thinker.int4_error --checkpoint DIR --calibration FILE --chats FILE

Random weights have the released shape: each token uses nine experts with drawn shares. The tokens
of a checkpoint use all experts of a layer equally, and rows are drawn from a normal distribution.
With `--chats`, rows and shares are instead those of the chats in a file, as the model in bfloat16
computes them, and weights are also quantized by other chats, those of `--calibration`: by the
method of `sgl-omni quantize --calibration`, and by the clipping search alone with errors weighted
by the inputs' squares.

Weights are quantized as `sgl-omni quantize` does; rows are not, so that only the weights' error
counts. An error is the norm of the difference, relative to the norm of the output in bfloat16;
products are in float32.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.thinker.shapes import SHAPE
from measurement.environment import fingerprint
from sglang_omni.entrypoints.cli.calibration_file import read_chats
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight, quantize_weight
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.int4.calibration import (
    calibrate_expert,
    list_prompts,
    restore_expert,
)
from sglang_omni.models.ming.thinker.int4.layout import GROUP, is_expert_matrix
from sglang_omni.models.ming.thinker.int4.weights import (
    CLIP_RATIOS,
    dequantize_int4,
    quantize_int4,
    round_to_values,
    search_scales,
)
from sglang_omni.models.ming.thinker.layerwise import (
    Expert,
    PromptStates,
    layer_prefix,
    load_expert,
    load_layer,
)
from sglang_omni.models.ming.thinker.reference import ReferenceLayer
from sglang_omni.models.weights import TensorFolder

TOKENS = 32
NUM_EXPERTS = int(SHAPE["num_experts_per_tok"]) + 1
HIDDEN, WIDTH = int(SHAPE["hidden_size"]), int(SHAPE["moe_intermediate_size"])
# The standard deviation of the drawn weights, which is about that of trained ones.
WEIGHT_STD = 0.02
# Of Student's t, whose tails are heavier than those of a normal distribution.
DEGREES_OF_FREEDOM = 5.0

RoundTrip = Callable[[Tensor], Tensor]


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


def restore_weighted(weight: Tensor, inputs: Tensor) -> Tensor:
    """Return a weight in symmetric four bits whose scales suit some inputs [tokens, columns]."""
    columns = weight.shape[1]
    groups = F.pad(weight, (0, -columns % GROUP)).unflatten(1, (-1, GROUP))
    squares = F.pad(inputs.square().mean(0), (0, -columns % GROUP)).view(-1, GROUP)
    scale, zero = search_scales(groups, symmetric=True, importance=squares)
    return ((round_to_values(groups, scale, zero) - zero) * scale).flatten(1)[:, :columns]


def calibrate(expert: Expert, inputs: Tensor, symmetric: bool) -> Expert:
    """Return an expert as the command stores it with these inputs [tokens, hidden]."""
    return restore_expert(calibrate_expert(expert, inputs, symmetric), expert)


def search_weighted(expert: Expert, inputs: Tensor) -> Expert:
    """Return an expert whose scales suit its inputs [tokens, hidden], without compensation."""
    gate, up = (restore_weighted(weight, inputs) for weight in (expert.gate, expert.up))
    rounded = Expert(gate, up, expert.down)
    return Expert(gate, up, restore_weighted(expert.down, rounded.activate(inputs)))


CALIBRATED_FORMS: dict[str, Callable[[Expert, Tensor], Expert]] = {
    "int4, weighted": search_weighted,
    "int4, calibrated": partial(calibrate, symmetric=True),
    "asym., calibrated": partial(calibrate, symmetric=False),
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
    return relative_errors(outputs)


def relative_errors(outputs: dict[str, Tensor]) -> dict[str, float]:
    """Return how far the outputs of each form are from those in bfloat16."""
    exact = outputs["bfloat16"]
    errors = {form: float((found - exact).norm() / exact.norm()) for form, found in outputs.items()}
    return {form: error for form, error in errors.items() if form != "bfloat16"}


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
        experts = [load_expert(stored, f"{name}.", torch.device(device)) for name in names]
        x = torch.randn(TOKENS, experts[0].gate.shape[1], device=device)
        shares = torch.ones(TOKENS, len(experts), device=device)
        yield layer.removeprefix("model.model."), measure_layer(experts, shares, x)


def measure_chats(
    folder: Path, calibration: Path, chats: Path, device: str
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the errors of each sparse layer for the tokens of some chats.

    Weights are calibrated with the tokens of others.
    """
    tensors, config = TensorFolder(folder), MingConfig.from_pretrained(folder).llm_config
    tokenizer, place = ThinkerTokenizer(folder), torch.device(device)
    known, measured = (
        PromptStates(tensors, config, list_prompts(tokenizer, read_chats(file)), place)
        for file in (calibration, chats)
    )
    for index in range(config.num_hidden_layers):
        layer = load_layer(tensors, config, index, place)
        for states in (known, measured):
            states.attend(layer)
            if not layer.sparse:
                states.add_dense(layer)
        if layer.sparse:
            yield f"layers.{index}", _measure_routed(tensors, index, layer, known, measured)


def _measure_routed(
    tensors: TensorFolder,
    index: int,
    layer: ReferenceLayer,
    known: PromptStates,
    measured: PromptStates,
) -> dict[str, float]:
    """Return the errors of a layer, and add the outputs in bfloat16 to both states."""
    outputs = {form: measured.zeros() for form in ("bfloat16", *FORMS, *CALIBRATED_FORMS)}
    known_outputs = known.zeros()
    for own, routed in zip(known.route(layer), measured.route(layer), strict=True):
        expert = load_expert(tensors, layer_prefix(index) + own.expert, known_outputs.device)
        inputs, x = known.normalize(layer, own.places), measured.normalize(layer, routed.places)
        own.add_outputs(known_outputs, expert, inputs)
        routed.add_outputs(outputs["bfloat16"], expert, x)
        for form, restore in FORMS.items():
            routed.add_outputs(outputs[form], expert.map(restore), x)
        for form, quantize in CALIBRATED_FORMS.items():
            routed.add_outputs(outputs[form], quantize(expert, inputs), x)
    known.add(known_outputs)
    measured.add(outputs["bfloat16"])
    return relative_errors(outputs)


def main() -> None:
    """Print the errors as a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, help="in bfloat16; otherwise weights are drawn")
    parser.add_argument("--calibration", type=Path, help="chats to calibrate with")
    parser.add_argument("--chats", type=Path, help="other chats, whose tokens are measured")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if bool(options.calibration) != bool(options.chats):
        parser.error("--calibration and --chats need each other")
    if options.chats and not options.checkpoint:
        parser.error("--chats needs --checkpoint")
    torch.manual_seed(0)
    if options.chats:
        files = options.calibration, options.chats
        found = measure_chats(options.checkpoint, *files, options.device)
    elif options.checkpoint:
        found = measure_checkpoint(options.checkpoint, options.device)
    else:
        found = measure_random(options.device)
    forms = [*FORMS, *(CALIBRATED_FORMS if options.chats else ())]
    print(f"{'relative error of the output':30s}" + "".join(f"{form:>18s}" for form in forms))
    errors: dict[str, dict[str, float]] = {}
    for name, layer in found:
        errors[name] = layer
        print(f"{name:30s}" + "".join(f"{layer[form]:18.4f}" for form in forms), flush=True)
    if options.out:
        result = {"environment": fingerprint(), "errors": errors}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
