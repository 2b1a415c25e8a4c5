"""Load an FP8 checkpoint as each of two ranks that share the experts; save what lies where.

python load_fp8_ranks.py CHECKPOINT FILE
"""

import sys
from pathlib import Path

import torch
from sglang.srt.layers.quantization.fp8 import Fp8Config
from sglang.srt.runtime_context import get_parallel
from torch import Tensor

from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
from sglang_omni.models.weights import TensorFolder
from tests.models.ming.thinker.run_ranks import SPARSE_LAYER, describe_rank, start_sglang

RANKS = 2
MLP = f"model.model.layers.{SPARSE_LAYER}.mlp."


def read_stored(stored: TensorFolder, rank: int, experts: int, kind: str) -> dict[str, Tensor]:
    """What a rank should hold of one layer's experts, under the names of its parameters."""

    def read(expert: str, part: str) -> Tensor:
        return stored[f"{MLP}{expert}.{part}_proj.{kind}"]

    own = [f"experts.{index}" for index in range(rank * experts, (rank + 1) * experts)]
    gate, up, down = (
        read("shared_experts", part).chunk(RANKS, dim)[rank]
        for part, dim in (("gate", 0), ("up", 0), ("down", 1))
    )
    return {
        f"{MLP}experts.w13_{kind}": torch.stack(
            [torch.cat((read(name, "gate"), read(name, "up"))) for name in own]
        ),
        f"{MLP}experts.w2_{kind}": torch.stack([read(name, "down") for name in own]),
        f"{MLP}shared_experts.gate_up_proj.{kind}": torch.cat((gate, up)),
        f"{MLP}shared_experts.down_proj.{kind}": down,
    }


def main() -> None:
    """Load and save."""
    checkpoint, target = Path(sys.argv[1]), sys.argv[2]
    start_sglang(checkpoint)
    config, stored = MingConfig.from_pretrained(checkpoint), TensorFolder(checkpoint)
    config.update({"ming_encoders": "external"})
    torch.set_default_dtype(torch.bfloat16)
    pairs: dict[str, tuple[Tensor, Tensor]] = {}
    for rank in range(RANKS):
        with get_parallel().override(**describe_rank(RANKS, RANKS, rank)):
            quantization = Fp8Config.from_config(config.quantization_config)
            model = BailingMM2NativeForConditionalGeneration(config, quantization)
            model.load_weights(stored.items())
        parameters = dict(model.named_parameters())
        for kind in ("weight", "weight_scale_inv"):
            wanted = read_stored(stored, rank, config.llm_config.num_experts // RANKS, kind)
            for name, tensor in wanted.items():
                pairs[f"{rank} {name}"] = parameters[name].data.clone(), tensor.clone()
    torch.save(pairs, target)


if __name__ == "__main__":
    main()
