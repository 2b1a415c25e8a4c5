"""Multiply by an FP8 head as each rank of several layouts has it, and save the joined logits.

SGLang's layers read a rank from a context, so one process plays all ranks, one after the other.

    python run_heads.py CHECKPOINT FILE
"""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.layers.logits_processor import should_apply_lm_head_quant_method
from sglang.srt.runtime_context import get_parallel
from torch import Tensor

from sglang_omni.models.ming.thinker.fp8 import quantize_head
from sglang_omni.models.ming.thinker.head import Fp8HeadMethod, build_head
from sglang_omni.protocol.errors import StartupError
from tests.models.ming.thinker.run_ranks import describe_rank, start_sglang

HIDDEN, ROWS = 256, 5
# A multiple of the block for each of eight ranks, and two with a last block of fewer rows; the last
# ranks of eight have only padding of the third.
VOCABULARIES = (2048, 960, 300)
RANKS = (1, 2, 4, 8)


def draw(vocabulary: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, and the values and scales of a head whose blocks differ much."""
    generator = torch.Generator().manual_seed(vocabulary)
    weight = torch.randn(vocabulary, HIDDEN, generator=generator)
    weight *= torch.linspace(0.1, 5, vocabulary)[:, None] * torch.linspace(1, 3, HIDDEN)
    return torch.randn(ROWS, HIDDEN, generator=generator), *quantize_head(weight)


def multiply(vocabulary: int, rank: int, ranks: int) -> tuple[Tensor, int]:
    """The logits of one rank, and its rows of the vocabulary."""
    x, values, scales = draw(vocabulary)
    config = SimpleNamespace(vocab_size=vocabulary, hidden_size=HIDDEN)
    with get_parallel().override(**describe_rank(ranks, 1, rank)), torch.no_grad():
        head: Any = build_head(config, True, "model.lm_head")
        for parameter, stored in ((head.weight, values), (head.weight_scale_inv, scales)):
            parameter.weight_loader(parameter, stored)
        assert should_apply_lm_head_quant_method(head, head.quant_method)
        head.quant_method.process_weights_after_loading(head)
        return head.quant_method.apply(head, x), head.num_embeddings_per_partition


def build_plain() -> Any:
    """A head that keeps its dtype."""
    config = SimpleNamespace(vocab_size=960, hidden_size=HIDDEN)
    return build_head(config, False, "model.lm_head")


def read_error() -> str:
    """What building says where SGLang should multiply the head in float32."""
    from sglang.srt.runtime_context import get_server_args

    arguments = get_server_args()
    arguments.enable_fp32_lm_head = True
    try:
        build_head(SimpleNamespace(vocab_size=960, hidden_size=HIDDEN), True, "model.lm_head")
    except StartupError as error:
        return error.message
    return ""


def main() -> None:
    """Multiply, and save."""
    start_sglang(Path(sys.argv[1]))
    joined: dict[tuple[int, int], Tensor] = {}
    shares: dict[tuple[int, int], int] = {}
    for vocabulary in VOCABULARIES:
        for ranks in RANKS:
            parts = [multiply(vocabulary, rank, ranks) for rank in range(ranks)]
            # As `LogitsProcessor` joins them, and cuts off what is beyond the vocabulary.
            joined[vocabulary, ranks] = torch.cat([part for part, _ in parts], -1)[:, :vocabulary]
            shares[vocabulary, ranks] = parts[0][1]
    plain = build_plain()
    found = {
        "joined": joined,
        "shares": shares,
        "plain is quantized": isinstance(plain.quant_method, Fp8HeadMethod),
        "error": read_error(),
    }
    torch.save(found, sys.argv[2])


if __name__ == "__main__":
    main()
