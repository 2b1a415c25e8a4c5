"""Measure what the output head in FP8 changes, with everything else in bfloat16.

    python -m benchmarks.thinker.head_error --out FILE                     # a drawn head
    python -m benchmarks.thinker.head_error --checkpoint DIR --out FILE    # a checkpoint's

An error is the norm of the difference of logits, relative to the norm of the logits in bfloat16;
products are in float32. `weights` rounds the head alone, as decode steps of up to 32 rows do;
`weights and rows` rounds the states too, by one scale for each 128 of them, as larger batches do. A
drawn head has the released width, and states are drawn from a normal distribution. With
`--checkpoint`, the plain model answers chats greedily (`benchmarks.thinker.int4_tokens` has the
method), and the report has the first token of each answer that the head in FP8 would not choose.
"""

import argparse
import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.thinker.int4_tokens import CHATS, MAX_TOKENS, compare_models
from benchmarks.thinker.shapes import SHAPE
from measurement.environment import fingerprint
from sglang_omni.entrypoints.cli.calibration_file import read_chats
from sglang_omni.models.calibration import CalibrationChat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.fp8 import FP8_MAX, dequantize_weight, quantize_head
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import ThinkerReference, load_reference

TOKENS, ROWS = 64, 128 * BLOCK
WEIGHT_STD = 0.02
"""The standard deviation of the drawn weights, which is about that of trained ones."""
DEGREES_OF_FREEDOM = 5.0
"""Of Student's t, whose tails are heavier than those of a normal distribution."""


def restore_head(weight: Tensor) -> Tensor:
    """Return the float32 weight that FP8 stores for a head."""
    return dequantize_weight(*quantize_head(weight))


def restore_rows(x: Tensor) -> Tensor:
    """Return float32 states [tokens, hidden] as FP8 stores them, by blocks of columns."""
    blocks = x.unflatten(-1, (-1, BLOCK))
    scale = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-10) / FP8_MAX
    return ((blocks / scale).to(torch.float8_e4m3fn).float() * scale).flatten(-2)


def measure_errors(weight: Tensor, x: Tensor) -> dict[str, float]:
    """Return the relative errors of the logits of states [tokens, hidden]."""
    rounded, logits = restore_head(weight), x @ weight.T
    found = {"weights": x @ rounded.T, "weights and rows": restore_rows(x) @ rounded.T}
    return {
        name: float((changed - logits).norm() / logits.norm()) for name, changed in found.items()
    }


def measure_drawn() -> dict[str, Any]:
    """Return the errors of drawn heads by the distribution of their weights."""
    generator = torch.Generator().manual_seed(0)
    hidden = int(SHAPE["hidden_size"])
    x = torch.randn(TOKENS, hidden, generator=generator)
    normal = torch.randn(ROWS, hidden, generator=generator)
    # A normal number over the root of a mean of squares of others.
    squares = torch.zeros_like(normal)
    for _ in range(int(DEGREES_OF_FREEDOM)):
        squares += torch.randn(ROWS, hidden, generator=generator).square()
    heavy = torch.randn(ROWS, hidden, generator=generator) / (squares / DEGREES_OF_FREEDOM).sqrt()
    weights = {"drawn, normal": normal, "drawn, heavy tails": heavy}
    return {name: measure_errors(WEIGHT_STD * weight, x) for name, weight in weights.items()}


def round_head(model: ThinkerReference) -> ThinkerReference:
    """Return the model with its head as FP8 stores it."""
    rounded = deepcopy(model)
    rounded.lm_head.weight = nn.Parameter(restore_head(model.lm_head.weight), requires_grad=False)
    return rounded


def measure_checkpoint(
    checkpoint: Path, chats: Sequence[CalibrationChat], max_tokens: int
) -> dict[str, Any]:
    """Return the errors of a checkpoint's head for its own states, and where answers differ."""
    model = load_reference(checkpoint, MingConfig.from_pretrained(checkpoint).llm_config)
    states: list[Tensor] = []
    handle = model.lm_head.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))
    report = compare_models(
        model, round_head(model), ThinkerTokenizer(checkpoint), chats, max_tokens
    )
    handle.remove()
    x = torch.cat([one.flatten(0, -2) for one in states])
    return {"errors": {"chats": measure_errors(model.lm_head.weight, x)}, **report}


def main() -> None:
    """Print and write the errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, help="in bfloat16; otherwise a head is drawn")
    parser.add_argument("--chats", type=Path, default=CHATS, help="JSON Lines of chats")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.checkpoint:
        report = measure_checkpoint(
            options.checkpoint, read_chats(options.chats), options.max_tokens
        )
        print(
            f"{len(report['differences'])} of {report['chats']} answers differ, in "
            f"{report['tokens']} tokens; noise {report['noise']:.3f}, median gap "
            f"{report['median_gap']:.2f}; gaps "
            + ", ".join(f"{one['gap']:.3f}" for one in report["differences"])
        )
    else:
        report = {"errors": measure_drawn()}
    for name, errors in report["errors"].items():
        print(f"{name}: " + ", ".join(f"{kind} {error:.4f}" for kind, error in errors.items()))
    if options.out:
        text = json.dumps({"environment": fingerprint(), **report}, indent=1, ensure_ascii=False)
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
