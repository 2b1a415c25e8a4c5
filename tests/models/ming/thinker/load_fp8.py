"""Build the thinker in SGLang with FP8 layers, load a checkpoint, and save two views of it.

One is what lies in the parameters, cut as the checkpoint cuts it; the other is what the checkpoint
holds.

    python load_fp8.py CHECKPOINT FILE
"""

import sys
from pathlib import Path

import torch
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.distributed import init_distributed_environment, initialize_model_parallel
from sglang.srt.layers.dp_attention import initialize_dp_attention
from sglang.srt.layers.moe import initialize_moe_config
from sglang.srt.layers.quantization.fp8 import Fp8Config
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler
from torch import Tensor

from sglang_omni.engines.runtime.ports import find_rendezvous_port
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
from sglang_omni.models.ming.thinker.plugin import register
from sglang_omni.models.weights import TensorFolder

SPARSE = (1, 2)


def build(checkpoint: Path) -> BailingMM2NativeForConditionalGeneration:
    """The model as SGLang's loader builds it, on one rank."""
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
    config = MingConfig.from_pretrained(checkpoint)
    config.update({"ming_encoders": "external"})
    torch.set_default_dtype(torch.bfloat16)
    quantisation = Fp8Config.from_config(config.quantization_config)
    return BailingMM2NativeForConditionalGeneration(config, quantisation)


def views(
    parameters: dict[str, Tensor], stored: TensorFolder, layer: int, kind: str
) -> dict[str, tuple[Tensor, Tensor]]:
    """(loaded, stored) of one sparse layer's matrices or scales, under the checkpoint's names."""
    prefix = f"model.model.layers.{layer}."
    found = {}
    for name in ("attention.query_key_value", "attention.dense"):
        key = f"{prefix}{name}.{kind}"
        found[key] = parameters[key], stored[key]
    up, down = (parameters[f"{prefix}mlp.experts.{part}_{kind}"] for part in ("w13", "w2"))
    experts = up.shape[0]
    for expert in range(experts):
        # The shared expert is the last of the stack.
        last = expert == experts - 1
        stem = f"{prefix}mlp.shared_experts" if last else f"{prefix}mlp.experts.{expert}"
        gate_rows, up_rows = up[expert].chunk(2)
        for part, rows in (("gate", gate_rows), ("up", up_rows), ("down", down[expert])):
            key = f"{stem}.{part}_proj.{kind}"
            found[key] = rows, stored[key]
    return found


def main() -> None:
    """Load and save."""
    checkpoint, target = Path(sys.argv[1]), sys.argv[2]
    model, stored = build(checkpoint), TensorFolder(checkpoint)
    model.load_weights(stored.items())
    parameters = {name: parameter.data for name, parameter in model.named_parameters()}
    pairs: dict[str, tuple[Tensor, Tensor]] = {}
    for layer in SPARSE:
        for kind in ("weight", "weight_scale_inv"):
            pairs |= views(parameters, stored, layer, kind)
    torch.save({name: pair[0].clone() for name, pair in pairs.items()}, target)
    torch.save({name: pair[1] for name, pair in pairs.items()}, target + ".stored")


if __name__ == "__main__":
    main()
