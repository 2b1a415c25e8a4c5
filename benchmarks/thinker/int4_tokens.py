"""List where greedy answers in four bits leave those in bfloat16, and what decided it.

    python -m benchmarks.thinker.int4_tokens --checkpoint BF16 --quantized INT4 --out FILE

The plain model answers each chat of a file (`--chats`, as `sgl-omni quantize --calibration` reads
it; text questions of newcomers otherwise) greedily in bfloat16's weights. The same tokens then go
through the weights in four bits. At the first token that those would not choose, the gap is the
difference of both tokens' logits in bfloat16. Four bits change such differences by `noise` (root
mean square over the two likeliest tokens of every place). A gap of a few times the noise is
rounding. A larger one is a defect: `--max-ratio` of the noise is allowed. Products are in float32.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from measurement.environment import fingerprint
from sglang_omni.entrypoints.cli.calibration_file import read_chats
from sglang_omni.models.calibration import CalibrationChat
from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import SCALE_SUFFIX
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.int4.weights import dequantize_int4, read_int4_matrix
from sglang_omni.models.ming.thinker.reference import ThinkerReference, load_reference
from sglang_omni.models.ming.thinker.routing import TEXT
from sglang_omni.models.ming.thinker.tensors import list_thinker_tensors
from sglang_omni.models.weights import TensorFolder, load_strict

CHATS = Path(__file__).with_name("int4_chats.jsonl")
MAX_TOKENS = 64
MAX_RATIO = 5.0


@dataclass(frozen=True)
class Difference:
    """The first token of an answer that four bits choose otherwise.

    Attributes:
        chat: Number of the chat, from 0.
        before: The answer up to there.
        bfloat16: The token in bfloat16.
        int4: The token in four bits.
        gap: Logit of the first less that of the second, in bfloat16.
    """

    chat: int
    before: str
    bfloat16: str
    int4: str
    gap: float


@dataclass(frozen=True)
class Answer:
    """Tokens of a greedy answer, and the logits [tokens, vocabulary] that chose them."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    logits: Tensor


def restore_weights(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Return the float32 weights, of these shapes, of a checkpoint in four bits."""
    stored = TensorFolder(folder)
    return {name: _restore(stored, name, shape) for name, shape in shapes.items()}


def _restore(stored: TensorFolder, name: str, shape: tuple[int, ...]) -> Tensor:
    if name + SCALE_SUFFIX in stored:
        return dequantize_weight(stored[name], stored[name + SCALE_SUFFIX])
    if name in stored:
        return stored[name].float()
    return dequantize_int4(read_int4_matrix(name, stored))[: shape[0], : shape[1]]


def load_quantized(folder: Path) -> ThinkerReference:
    """Load a checkpoint in four bits into the plain model."""
    config = MingConfig.from_pretrained(folder).llm_config
    model = ThinkerReference(config)
    load_strict(model, restore_weights(folder, list_thinker_tensors(config)), prefix="model.")
    return model.eval()


def compute_logits(model: ThinkerReference, ids: Sequence[int]) -> Tensor:
    """Return the logits [tokens, vocabulary] after each token of a text."""
    x = model.model.word_embeddings(torch.tensor(ids))
    return model(x, torch.arange(len(ids)).expand(3, -1), torch.full((len(ids),), TEXT))


def answer_greedily(
    model: ThinkerReference, prompt: Sequence[int], max_tokens: int, end: int
) -> Answer:
    """Continue a prompt greedily up to the token `end`, which is included."""
    cache, tokens, logits = model.new_cache(), list[int](), list[Tensor]()
    ids, first = list(prompt), 0
    while len(tokens) < max_tokens and (not tokens or tokens[-1] != end):
        x = model.model.word_embeddings(torch.tensor(ids))
        positions = torch.arange(first, first + len(ids)).expand(3, -1)
        logits.append(model(x, positions, torch.full((len(ids),), TEXT), cache)[-1])
        tokens.append(int(logits[-1].argmax()))
        first, ids = first + len(ids), tokens[-1:]
    return Answer(tuple(prompt), tuple(tokens), torch.stack(logits))


def compute_forced_logits(model: ThinkerReference, answer: Answer) -> Tensor:
    """Return the logits [tokens, vocabulary] of another model where an answer's tokens are."""
    ids = (*answer.prompt, *answer.tokens[:-1])
    return compute_logits(model, ids)[len(answer.prompt) - 1 :]


def find_first_difference(answer: Answer, logits: Tensor) -> int | None:
    """Return the place of the first token that other logits would not choose; None if none."""
    differs = logits.argmax(-1) != torch.tensor(answer.tokens)
    return int(differs.nonzero()[0]) if differs.any() else None


def compute_gaps(logits: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return how far one token of each place [tokens] is above another."""
    return (logits.gather(1, first[:, None]) - logits.gather(1, second[:, None]))[:, 0]


def render_question(tokenizer: ThinkerTokenizer, chat: CalibrationChat) -> tuple[int, ...]:
    """Return the tokens of a chat without its last answer."""
    messages = list(chat.messages)
    while messages and messages[-1].role == "assistant":
        messages.pop()
    return tokenizer.encode(render_chat(messages, chat.thinking, chat.tools)).ids


def compare_answers(
    checkpoint: Path, quantized: Path, chats: Sequence[CalibrationChat], max_tokens: int
) -> dict[str, Any]:
    """Return where two checkpoints differ, and how large gaps and noise are."""
    config = MingConfig.from_pretrained(checkpoint).llm_config
    models = load_reference(checkpoint, config), load_quantized(quantized)
    return compare_models(*models, ThinkerTokenizer(checkpoint), chats, max_tokens)


def compare_models(
    original: ThinkerReference,
    rounded: ThinkerReference,
    tokenizer: ThinkerTokenizer,
    chats: Sequence[CalibrationChat],
    max_tokens: int,
) -> dict[str, Any]:
    """Return where a rounded model differs, and how large gaps and noise are."""
    differences: list[Difference] = []
    gaps: list[Tensor] = []
    changes: list[Tensor] = []
    for number, chat in enumerate(chats):
        prompt = render_question(tokenizer, chat)
        answer = answer_greedily(original, prompt, max_tokens, original.config.eos_token_id)
        logits = compute_forced_logits(rounded, answer)
        best, second = answer.logits.topk(2).indices.T
        gaps.append(compute_gaps(answer.logits, best, second))
        changes.append(compute_gaps(logits, best, second) - gaps[-1])
        place = find_first_difference(answer, logits)
        if place is not None:
            differences.append(_describe(tokenizer, number, answer, logits, place))
    noise = float(torch.cat(changes).square().mean().sqrt())
    return {
        "chats": len(chats),
        "tokens": sum(map(len, gaps)),
        "noise": noise,
        "median_gap": median(torch.cat(gaps).tolist()),
        "differences": [asdict(one) for one in sorted(differences, key=lambda one: -one.gap)],
    }


def _describe(
    tokenizer: ThinkerTokenizer, number: int, answer: Answer, logits: Tensor, place: int
) -> Difference:
    ours, theirs = answer.tokens[place], int(logits[place].argmax())
    return Difference(
        number,
        tokenizer.decode(answer.tokens[:place]),
        tokenizer.token_name(ours),
        tokenizer.token_name(theirs),
        float(answer.logits[place, ours] - answer.logits[place, theirs]),
    )


def list_defects(report: Mapping[str, Any], max_ratio: float) -> Iterator[Mapping[str, Any]]:
    """Yield the differences whose gap is more than `max_ratio` times the noise."""
    for one in report["differences"]:
        if one["gap"] > max_ratio * report["noise"]:
            yield one


def main() -> int:
    """Print and write the differences; return 1 if one is a defect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="in bfloat16")
    parser.add_argument("--quantized", type=Path, required=True, help="the same in four bits")
    parser.add_argument("--chats", type=Path, default=CHATS, help="JSON Lines of chats")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS)
    parser.add_argument("--max-ratio", type=float, default=MAX_RATIO)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = compare_answers(
        options.checkpoint, options.quantized, read_chats(options.chats), options.max_tokens
    )
    defects = list(list_defects(report, options.max_ratio))
    for one in report["differences"]:
        print(
            f"chat {one['chat']:3d}, after {one['before'][-40:]!r}: {one['bfloat16']!r}, in four "
            f"bits {one['int4']!r}; gap {one['gap']:.2f}"
        )
    print(
        f"{len(report['differences'])} of {report['chats']} answers differ, {len(defects)} by more "
        f"than rounding; noise {report['noise']:.2f}, median gap {report['median_gap']:.2f}"
    )
    if options.out:
        result = {"environment": fingerprint(), **report}
        text = json.dumps(result, indent=1, ensure_ascii=False)
        options.out.write_text(text + "\n", encoding="utf-8")
    return 1 if defects else 0


if __name__ == "__main__":
    with torch.inference_mode():
        raise SystemExit(main())
