"""Build the thinker as each rank of several layouts has it, and save what its experts add up to.

SGLang's layers read a rank from a context, so one process plays all ranks, one after the other.

    python run_ranks.py CHECKPOINT FILE
"""

import sys
from pathlib import Path
from typing import Any

import torch
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.distributed import init_distributed_environment, initialize_model_parallel
from sglang.srt.layers.dp_attention import initialize_dp_attention
from sglang.srt.layers.moe import initialize_moe_config
from sglang.srt.runtime_context import get_parallel
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler
from torch import Tensor

from sglang_omni.engines.runtime.ports import find_rendezvous_port
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
from sglang_omni.models.ming.thinker.plugin import register
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.errors import CheckpointError, StartupError

LAYOUTS = ((1, 1), (2, 1), (2, 2), (4, 2), (4, 4))
SPARSE_LAYER = 1
TOKENS = 12


def start_sglang(checkpoint: Path) -> None:
    """Initialize what SGLang's layers need, for one process."""
    register()
    arguments = ServerArgs(
        model_path=str(checkpoint),
        device="cpu",
        attention_backend="torch_native",
        mem_fraction_static=0.5,
        max_total_tokens=1024,
    )
    set_global_server_args_for_scheduler(arguments)
    address = f"tcp://127.0.0.1:{find_rendezvous_port()}"
    init_distributed_environment(1, 0, address, local_rank=0, backend="gloo")
    initialize_model_parallel()
    initialize_dp_attention(arguments, ModelConfig.from_server_args(arguments))
    initialize_moe_config(arguments)


def describe_rank(ranks: int, groups: int, rank: int) -> dict[str, int]:
    """What SGLang's context says on this rank of a layout."""
    in_group = ranks // groups
    return {
        "tp_size": ranks,
        "tp_rank": rank,
        "moe_ep_size": groups,
        "moe_ep_rank": rank // in_group,
        "moe_tp_size": in_group,
        "moe_tp_rank": rank % in_group,
    }


def load(config: MingConfig, stored: dict[str, Tensor]) -> Any:
    model = BailingMM2NativeForConditionalGeneration(config)
    for parameter in model.parameters():
        # Whatever is not loaded shows in the sums.
        torch.nn.init.constant_(parameter, float("nan"))
    model.load_weights(stored.items())
    return model.model.model.layers[SPARSE_LAYER].mlp


def read_error(config: MingConfig, stored: dict[str, Tensor], without: str = "") -> str:
    """What building and loading says without a tensor."""
    try:
        load(config, {name: tensor for name, tensor in stored.items() if name != without})
    except (CheckpointError, StartupError) as error:
        return str(error)
    return ""


def main() -> None:
    """Sum, and save."""
    checkpoint, target = Path(sys.argv[1]), sys.argv[2]
    start_sglang(checkpoint)
    config = MingConfig.from_pretrained(checkpoint)
    config.update({"ming_encoders": "external"})
    stored = dict(TensorFolder(checkpoint).items())
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(TOKENS, config.llm_config.hidden_size, generator=generator)
    routes = torch.arange(TOKENS, dtype=torch.uint8) % 3
    found: dict[str, Any] = {}
    for ranks, groups in LAYOUTS:
        sums: list[Tensor] = []
        for rank in range(ranks):
            with get_parallel().override(**describe_rank(ranks, groups, rank)), torch.no_grad():
                mlp = load(config, stored)
                sums.append(mlp(x.clone(), routes, True))
                shape = mlp.experts.w13_weight.shape
        found[f"{ranks}/{groups}"] = torch.stack(sums).sum(0), tuple(shape)
    with get_parallel().override(**describe_rank(2, 2, 0)):
        # An expert of the other rank, and half of the shared one.
        for part in ("experts.15.up_proj", "shared_experts.gate_proj"):
            name = f"model.model.layers.{SPARSE_LAYER}.mlp.{part}.weight"
            found[name] = read_error(config, stored, name)
    with get_parallel().override(**describe_rank(8, 8, 0)):
        found["8/8"] = read_error(config, stored)
    torch.save(found, target)


if __name__ == "__main__":
    main()
