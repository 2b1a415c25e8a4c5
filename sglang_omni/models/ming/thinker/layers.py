"""The thinker's layers on SGLang's parallel layers."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from sglang.srt.distributed import tensor_model_parallel_all_reduce
from sglang.srt.layers.activation import SiluAndMul
from sglang.srt.layers.communicator import LayerCommunicator, LayerScatterModes
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from sglang.srt.layers.moe import should_skip_post_experts_all_reduce
from sglang.srt.layers.moe.ep_moe.layer import get_moe_impl_class
from sglang.srt.layers.moe.topk import StandardTopKOutput, TopK
from sglang.srt.layers.quantization.base_config import QuantizationConfig
from sglang.srt.layers.radix_attention import RadixAttention
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.runtime_context import get_parallel
from sglang.srt.utils import add_prefix
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.rope import rotate
from sglang_omni.models.ming.thinker.routing import (
    ROUTERS,
    TEXT,
    Routing,
    route,
    select_router,
)


@dataclass(frozen=True)
class StepInputs:
    """What every layer of one forward pass shares.

    `cos` and `sin` are [tokens, rotary_dim / 2]. `routes` [tokens] holds route ids, or is None
    when every token uses the text router: any decode step and any text prompt.
    """

    cos: Tensor
    sin: Tensor
    routes: Tensor | None


class MLP(nn.Module):
    """SwiGLU, split over the tensor-parallel ranks."""

    def __init__(
        self,
        hidden: int,
        width: int,
        quant_config: QuantizationConfig | None,
        prefix: str,
        reduce_results: bool = True,
    ) -> None:
        super().__init__()
        self.gate_up_proj = MergedColumnParallelLinear(
            hidden,
            [width] * 2,
            bias=False,
            quant_config=quant_config,
            prefix=add_prefix("gate_up_proj", prefix),
        )
        self.down_proj = RowParallelLinear(
            width,
            hidden,
            bias=False,
            reduce_results=reduce_results,
            quant_config=quant_config,
            prefix=add_prefix("down_proj", prefix),
        )
        self.act_fn = SiluAndMul()

    def forward(self, x: Tensor, skip_all_reduce: bool = False) -> Tensor:
        gate_up, _ = self.gate_up_proj(x)
        out, _ = self.down_proj(self.act_fn(gate_up), skip_all_reduce=skip_all_reduce)
        return out


class MultiRouter(nn.Module):
    """The text, image and audio routers: one stacked product, then a choice by route id."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.routing = Routing.of(config)
        count = len(ROUTERS)
        self.weight = nn.Parameter(torch.empty(count, config.num_experts, config.hidden_size))
        # float32 keeps the bias exact next to float32 scores.
        bias = torch.empty(count, config.num_experts, dtype=torch.float32)
        self.expert_bias = nn.Parameter(bias)
        self.topk = TopK(
            top_k=self.routing.top_k,
            renormalize=True,
            use_grouped_topk=True,
            num_expert_group=self.routing.groups,
            topk_group=self.routing.top_groups,
            correction_bias=self.expert_bias.data[TEXT],
            routed_scaling_factor=self.routing.scale,
            apply_routed_scaling_factor_on_output=True,
        )

    def forward(self, x: Tensor, routes: Tensor | None) -> Any:
        """Choose experts for x [tokens, hidden]; SGLang's top-k output."""
        if routes is not None:
            return self.forward_mixed(x, routes)
        logits = F.linear(x, self.weight[TEXT])
        if x.is_cuda:
            return self.topk(x, logits)
        # SGLang's CPU kernels support a few expert counts only; the plain rule supports all.
        return _standard(*route(logits, self.expert_bias[TEXT], self.routing), logits)

    def forward_mixed(self, x: Tensor, routes: Tensor) -> StandardTopKOutput:
        """Tokens of several routers: the plain rule with a bias per token."""
        logits = F.linear(x, self.weight.flatten(0, 1)).unflatten(-1, (len(ROUTERS), -1))
        chosen, bias = select_router(logits, self.expert_bias, routes)
        return _standard(*route(chosen, bias, self.routing), chosen)


def _standard(weights: Tensor, ids: Tensor, logits: Tensor) -> StandardTopKOutput:
    return StandardTopKOutput(weights, ids.int(), logits)


class SparseMLP(nn.Module):
    """Routed experts plus one ungated shared expert, summed before one all-reduce."""

    def __init__(
        self, config: Any, layer_id: int, quant_config: QuantizationConfig | None, prefix: str
    ) -> None:
        super().__init__()
        self.tp_size = get_parallel().tp_size
        self.router = MultiRouter(config)
        self.experts = get_moe_impl_class(quant_config)(
            num_experts=config.num_experts,
            top_k=config.num_experts_per_tok,
            layer_id=layer_id,
            hidden_size=config.hidden_size,
            intermediate_size=config.moe_intermediate_size,
            quant_config=quant_config,
            prefix=add_prefix("experts", prefix),
        )
        self.shared_experts = MLP(
            config.hidden_size,
            config.moe_intermediate_size * config.num_shared_experts,
            quant_config,
            add_prefix("shared_experts", prefix),
            reduce_results=False,
        )

    def forward(self, x: Tensor, routes: Tensor | None, skip_all_reduce: bool) -> Tensor:
        # The shared expert first: the experts may overwrite their input.
        shared = self.shared_experts(x)
        out = self.experts(x, self.router(x, routes)) + shared
        if self.tp_size == 1 or skip_all_reduce:
            return out
        if should_skip_post_experts_all_reduce(
            is_tp_path=True, use_reduce_scatter=False, should_allreduce_fusion=False
        ):
            return out
        return tensor_model_parallel_all_reduce(out)


class Attention(nn.Module):
    """Grouped-query attention over SGLang's paged cache, QK-norm before partial rotary."""

    def __init__(
        self, config: Any, layer_id: int, quant_config: QuantizationConfig | None, prefix: str
    ) -> None:
        super().__init__()
        parallel, self.head_dim = get_parallel(), config.head_dim
        ranks = {"tp_rank": parallel.attn_tp_rank, "tp_size": parallel.attn_tp_size}
        self.query_key_value = QKVParallelLinear(
            config.hidden_size,
            self.head_dim,
            config.num_attention_heads,
            config.num_key_value_heads,
            bias=False,
            quant_config=quant_config,
            prefix=add_prefix("query_key_value", prefix),
            **ranks,
        )
        self.dense = RowParallelLinear(
            config.num_attention_heads * self.head_dim,
            config.hidden_size,
            bias=False,
            quant_config=quant_config,
            reduce_results=False,
            prefix=add_prefix("dense", prefix),
            **ranks,
        )
        self.q_norm = RMSNorm(self.head_dim, eps=config.rms_norm_eps)
        self.k_norm = RMSNorm(self.head_dim, eps=config.rms_norm_eps)
        heads = config.num_attention_heads // parallel.attn_tp_size
        kv_heads = max(1, config.num_key_value_heads // parallel.attn_tp_size)
        self.sizes = [heads * self.head_dim, kv_heads * self.head_dim, kv_heads * self.head_dim]
        self.attn = RadixAttention(
            heads,
            self.head_dim,
            self.head_dim**-0.5,
            num_kv_heads=kv_heads,
            layer_id=layer_id,
            prefix=add_prefix("attn", prefix),
        )

    def forward(self, x: Tensor, inputs: StepInputs, batch: ForwardBatch) -> Tensor:
        qkv, _ = self.query_key_value(x)
        q, k, v = qkv.split(self.sizes, dim=-1)
        q, k = self._prepare(q, self.q_norm, inputs), self._prepare(k, self.k_norm, inputs)
        out, _ = self.dense(self.attn(q, k, v, batch))
        return out

    def _prepare(self, x: Tensor, norm: RMSNorm, inputs: StepInputs) -> Tensor:
        normed = norm(x.reshape(-1, self.head_dim)).view(x.shape[0], -1, self.head_dim)
        return rotate(normed, inputs.cos, inputs.sin).flatten(1)


class Layer(nn.Module):
    """One pre-norm layer; SGLang's communicator fuses its norms with the all-reduces."""

    def __init__(
        self, config: Any, layer_id: int, quant_config: QuantizationConfig | None, prefix: str
    ) -> None:
        super().__init__()
        first_sparse, mlp = config.first_k_dense_replace, add_prefix("mlp", prefix)
        self.sparse = layer_id >= first_sparse
        self.input_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        attention = add_prefix("attention", prefix)
        self.attention = Attention(config, layer_id, quant_config, attention)
        self.mlp = (
            SparseMLP(config, layer_id, quant_config, mlp)
            if self.sparse
            else MLP(config.hidden_size, config.intermediate_size, quant_config, mlp)
        )
        self.communicator = LayerCommunicator(
            layer_scatter_modes=LayerScatterModes.init_new(
                layer_id=layer_id,
                num_layers=config.num_hidden_layers,
                is_layer_sparse=self.sparse,
                is_previous_layer_sparse=layer_id - 1 >= first_sparse,
                is_next_layer_sparse=layer_id + 1 >= first_sparse,
            ),
            input_layernorm=self.input_layernorm,
            post_attention_layernorm=self.post_attention_layernorm,
            is_last_layer=layer_id == config.num_hidden_layers - 1,
        )

    def forward(
        self, x: Tensor, residual: Tensor | None, inputs: StepInputs, batch: ForwardBatch
    ) -> tuple[Tensor, Tensor]:
        """One layer on x [tokens, hidden]; returns its output and the residual stream."""
        x, residual = self.communicator.prepare_attn(x, residual, batch)
        x = self.attention(x, inputs, batch)
        x, residual = self.communicator.prepare_mlp(x, residual, batch)
        fuse = self.communicator.should_fuse_mlp_allreduce_with_next_layer(batch)
        x = self.mlp(x, inputs.routes, fuse) if self.sparse else self.mlp(x, fuse)
        if fuse:
            # The next layer's norm reduces; SGLang reads this mark there.
            x._sglang_needs_allreduce_fusion = True  # type: ignore[attr-defined]
            return x, residual
        return self.communicator.postprocess_layer(x, residual, batch)
