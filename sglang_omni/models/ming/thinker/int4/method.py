"""The quantization method for SGLang's layers of a checkpoint with experts of four bits."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from sglang.srt.layers.linear import LinearBase
from sglang.srt.layers.moe import MoeRunnerConfig
from sglang.srt.layers.moe.fused_moe_triton import FusedMoE
from sglang.srt.layers.moe.token_dispatcher.standard import (
    StandardCombineInput,
    StandardDispatchOutput,
)
from sglang.srt.layers.quantization.base_config import (
    FusedMoEMethodBase,
    QuantizationConfig,
    QuantizeMethodBase,
)
from sglang.srt.layers.quantization.fp8 import Fp8Config, Fp8LinearMethod
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from sglang.srt.runtime_context import get_parallel, get_server_args
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.fp8 import dequantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import QUANTIZATION_CONFIG
from sglang_omni.models.ming.thinker.int4.experts import (
    ExpertChoice,
    read_experts,
    run_int4_experts,
)
from sglang_omni.models.ming.thinker.int4.layout import (
    GROUP,
    METHOD,
    PACKED,
    SCALE,
    TILE_ROWS,
    WORDS,
    ZERO,
    Int4Format,
    pad_expert_width,
    read_int4_format,
)
from sglang_omni.protocol.errors import CheckpointError, StartupError


class Int4Config(QuantizationConfig):
    """SGLang's view of a checkpoint with experts of four bits."""

    def __init__(self, stored: Int4Format) -> None:
        super().__init__()
        self.stored = stored
        self._fp8 = Fp8Config.from_config(dict(QUANTIZATION_CONFIG))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Int4Config":
        """Read `quantization_config` of a `config.json`."""
        return cls(read_int4_format(config))

    @classmethod
    def get_name(cls) -> str:
        """Return the name of the method."""
        return METHOD

    @classmethod
    def get_supported_act_dtypes(cls) -> list[torch.dtype]:
        """Return the dtypes of rows; float32 is for CPUs, as the kernels take bfloat16."""
        return [torch.bfloat16, torch.float32]

    @classmethod
    def get_min_capability(cls) -> int:
        """Return the least compute capability: the kernels use bfloat16 as Hopper GPUs have it."""
        return 90

    @staticmethod
    def get_config_filenames() -> list[str]:
        """Return no file beside `config.json`."""
        return []

    def get_scaled_act_names(self) -> list[str]:
        """Return no activation with scales."""
        return []

    def get_quant_method(self, layer: nn.Module, prefix: str) -> QuantizeMethodBase | None:
        """Return the method of a layer, or None for one that is not quantized."""
        if isinstance(layer, FusedMoE):
            return Int4ExpertsMethod(self.stored)
        if not isinstance(layer, LinearBase):
            return None
        if not self.stored.fp8_rest:
            return UnquantizedLinearMethod()
        if get_server_args().device == "cpu":
            return DequantizedFp8LinearMethod(self._fp8)
        return self._fp8.get_quant_method(layer, prefix)


class DequantizedFp8LinearMethod(Fp8LinearMethod):
    """Loads FP8 and multiplies in the dtype of the rows, on CPUs.

    SGLang multiplies FP8 only on CPUs with AMX, and in a layout of its own.
    """

    def process_weights_after_loading(self, layer: Any) -> None:
        """Replace the weight by its dequantized form."""
        weight = dequantize_weight(layer.weight.data, layer.weight_scale_inv.data)
        layer.weight = nn.Parameter(weight.to(layer.orig_dtype), requires_grad=False)

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the product [tokens, columns]."""
        return F.linear(x, layer.weight, bias)


@dataclass(frozen=True)
class _RankShare:
    """The part of each expert's matrices that a tensor-parallel rank holds."""

    rank: int
    ranks: int

    def split_width(self, width: int) -> int:
        """Return this rank's part of the width of an expert, as stored.

        Raises:
            StartupError: A part would have no whole groups.
        """
        stored = pad_expert_width(width)
        if stored % (self.ranks * GROUP):
            raise StartupError(
                f"{self.ranks} ranks cannot share experts of {stored} columns in four bits: "
                f"each needs a multiple of {GROUP}; use fewer ranks"
            )
        return stored // self.ranks

    def fill(self, target: Tensor, tensor: Tensor, part: str) -> None:
        """Copy this rank's share of a stored tensor into one expert's part of a parameter.

        `part` is "w1" (gate), "w3" (up) or "w2" (down).
        """
        # Ranks share the rows of gate and up, and the columns of down.
        dim = 1 if part == "w2" else 0
        share = tensor.chunk(self.ranks, dim)[self.rank]
        if part != "w2":
            target = target.chunk(2)[0 if part == "w1" else 1]
        if target.shape != share.shape:
            raise CheckpointError(
                f"an expert's tensor of shape {list(tensor.shape)} cannot be split over "
                f"{self.ranks} ranks as {list(target.shape)}"
            )
        target.copy_(_convert_exactly(share, target.dtype))


def _convert_exactly(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the tensor in another dtype; raise `CheckpointError` if that changes a value."""
    converted = tensor.to(dtype)
    if tensor.dtype != dtype and not torch.equal(converted.to(tensor.dtype), tensor):
        raise CheckpointError(f"scales in {tensor.dtype} have values that {dtype} lacks")
    return converted


class Int4ExpertsMethod(FusedMoEMethodBase):
    """Creates, loads and multiplies the experts of a layer."""

    def __init__(self, stored: Int4Format) -> None:
        self._stored = stored

    def create_weights(
        self,
        layer: nn.Module,
        num_experts: int,
        hidden_size: int,
        intermediate_size_per_partition: int,
        params_dtype: torch.dtype,
        **_: Any,
    ) -> None:
        """Register the parameters `w13_*` and `w2_*`, with this project's loader."""
        parallel = get_parallel()
        if parallel.moe_ep_size > 1:
            raise StartupError("experts in four bits do not support expert parallelism")
        share = _RankShare(parallel.moe_tp_rank, parallel.moe_tp_size)
        width = share.split_width(intermediate_size_per_partition * share.ranks)
        shapes = {"w13": (2 * width, hidden_size), "w2": (hidden_size, width)}
        for name, (rows, columns) in shapes.items():
            tiled = num_experts, rows // TILE_ROWS, columns // GROUP, TILE_ROWS
            _register(layer, f"{name}_{PACKED}", (*tiled, WORDS), torch.int16, share)
            scale_dtype = getattr(torch, self._stored.scale_dtype)
            _register(layer, f"{name}_{SCALE}", tiled, scale_dtype, share)
            if not self._stored.symmetric:
                _register(layer, f"{name}_{ZERO}", tiled, torch.int16, share)

    def create_moe_runner(self, layer: nn.Module, moe_runner_config: MoeRunnerConfig) -> None:
        """Keep the configuration of the layer, which must be what the kernels compute."""
        if moe_runner_config.activation != "silu" or moe_runner_config.apply_router_weight_on_input:
            raise StartupError("experts in four bits need SwiGLU, weighted after the products")

    def apply(
        self, layer: nn.Module, dispatch_output: StandardDispatchOutput
    ) -> StandardCombineInput:
        """Return the summed expert outputs of this rank."""
        weights, ids, _ = dispatch_output.topk_output
        choice = ExpertChoice(ids, weights)
        return StandardCombineInput(
            run_int4_experts(
                dispatch_output.hidden_states,
                read_experts(layer),
                choice,
                batch_invariant=get_server_args().enable_deterministic_inference,
            )
        )


def _register(
    layer: nn.Module, name: str, shape: tuple[int, ...], dtype: torch.dtype, share: _RankShare
) -> None:
    """Register a parameter of the stacked experts, with a loader as `FusedMoE` calls them."""

    def load(
        parameter: nn.Parameter, tensor: Tensor, _: str, *, shard_id: str, expert_id: int
    ) -> None:
        share.fill(parameter.data[expert_id], tensor, shard_id)

    parameter: Any = nn.Parameter(torch.empty(shape, dtype=dtype), requires_grad=False)
    parameter.weight_loader = load
    layer.register_parameter(name, parameter)
