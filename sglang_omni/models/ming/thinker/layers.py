"""The thinker's layers, built from SGLang's parallel layers."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from sglang.srt.distributed import tensor_model_parallel_all_reduce
from sglang.srt.layers.activation import SiluAndMul
from sglang.srt.layers.communicator import LayerCommunicator, LayerScatterModes
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.linear import (
    LinearBase,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from sglang.srt.layers.moe import should_skip_post_experts_all_reduce
from sglang.srt.layers.moe.ep_moe.layer import get_moe_impl_class
from sglang.srt.layers.moe.topk import StandardTopKOutput
from sglang.srt.layers.quantization.base_config import QuantizationConfig
from sglang.srt.layers.quantization.fp8 import Fp8LinearMethod
from sglang.srt.layers.radix_attention import RadixAttention
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.model_executor.forward_context import get_token_to_kv_pool
from sglang.srt.models.utils import enable_fused_set_kv_buffer
from sglang.srt.runtime_context import get_parallel, get_server_args
from sglang.srt.utils import add_prefix
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.attention_triton import get_attention_workspace
from sglang_omni.models.ming.thinker.decode_attention import attend_step, supports_step
from sglang_omni.models.ming.thinker.decode_moe import build_decode_experts, supports_decode_kernels
from sglang_omni.models.ming.thinker.decode_norm import StepNorm
from sglang_omni.models.ming.thinker.expert_parallel import MaskedDispatcher
from sglang_omni.models.ming.thinker.rope import apply_rotary
from sglang_omni.models.ming.thinker.rope_triton import LayerKVCache, prepare_queries_and_keys
from sglang_omni.models.ming.thinker.routing import (
    ROUTERS,
    TEXT,
    Routing,
    append_shared_expert,
    select_experts,
    select_router,
)
from sglang_omni.models.ming.thinker.routing_triton import select_experts_fused
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
    MAX_ROWS,
    get_workspace,
    wrap_linear,
)
from sglang_omni.protocol.errors import StartupError

MAX_PREFETCH_ROWS = 32
"""With more rows, attention reads so much that it evicts a weight prefetched before it."""


def use_small_batch_gemm(linear: LinearBase) -> bool:
    """Make a layer with an FP8 weight use the small-batch kernel for decode steps.

    Returns whether it does. Hopper GPUs only: later ones store scales as powers of two in a layout
    of their own.
    """
    method = linear.quant_method
    if (
        not supports_decode_kernels()
        or not isinstance(method, Fp8LinearMethod)
        or not method.block_quant
    ):
        return False
    workspace = get_workspace(linear.weight.device)
    method.w8a8_block_fp8_linear = wrap_linear(method.w8a8_block_fp8_linear, workspace)
    return True


@dataclass(frozen=True)
class StepInputs:
    """Inputs that all layers of one forward pass share.

    `cos` and `sin` are [tokens, rotary_dim / 2]. `routes` [tokens] holds route ids; it is None when
    every token uses the text router, as in any decode step and any text prompt.
    """

    cos: Tensor
    sin: Tensor
    routes: Tensor | None


class ThinkerMLP(nn.Module):
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
        use_small_batch_gemm(self.gate_up_proj)
        use_small_batch_gemm(self.down_proj)
        self.act_fn = SiluAndMul()

    def forward(self, x: Tensor, skip_all_reduce: bool = False) -> Tensor:
        """Return [tokens, hidden]; with `skip_all_reduce` only this rank's summand of it."""
        gate_up, _ = self.gate_up_proj(x)
        out, _ = self.down_proj(self.act_fn(gate_up), skip_all_reduce=skip_all_reduce)
        return out


class MultiRouter(nn.Module):
    """The text, image and audio routers: one stacked matrix product, selected by route id.

    A batch of text only, as any decode step is, computes the product of one router. With
    `append_shared` every token also uses the shared expert, which is last.
    """

    def __init__(self, config: Any, *, append_shared: bool) -> None:
        super().__init__()
        self.routing, self.append_shared = Routing.from_config(config), append_shared
        count = len(ROUTERS)
        self.weight = nn.Parameter(torch.empty(count, config.num_experts, config.hidden_size))
        # float32, because the scores are float32 too.
        bias = torch.empty(count, config.num_experts, dtype=torch.float32)
        self.expert_bias = nn.Parameter(bias)

    def forward(self, x: Tensor, routes: Tensor | None) -> StandardTopKOutput:
        """Select experts for x [tokens, hidden]."""
        weight = self.weight[TEXT] if routes is None else self.weight.flatten(0, 1)
        logits = F.linear(x, weight)
        select = select_experts_fused if x.is_cuda else _select_experts_reference
        chosen = select(
            logits, self.expert_bias, self.routing, routes, append_shared=self.append_shared
        )
        return StandardTopKOutput(*chosen, logits)


def _select_experts_reference(
    logits: Tensor,
    bias: Tensor,
    routing: Routing,
    routes: Tensor | None,
    *,
    append_shared: bool,
) -> tuple[Tensor, Tensor]:
    """Compute `select_experts_fused` in plain PyTorch."""
    if routes is None:
        router_logits, router_bias = logits, bias[TEXT]
    else:
        stacked = logits.unflatten(-1, (len(ROUTERS), -1))
        router_logits, router_bias = select_router(stacked, bias, routes)
    weights, ids = select_experts(router_logits, router_bias, routing)
    ids = ids.int()
    return append_shared_expert(weights, ids, routing.experts) if append_shared else (weights, ids)


class ThinkerSparseMLP(nn.Module):
    """Routed experts plus one ungated shared expert; one all-reduce sums everything.

    The shared expert is stored as one more expert, which every token uses, so it needs no kernels
    of its own. With expert parallelism that would add it once for each group of ranks. Then it is
    an MLP, split over all ranks, and the stack has this rank's routed experts only.
    """

    def __init__(
        self, config: Any, layer_id: int, quant_config: QuantizationConfig | None, prefix: str
    ) -> None:
        super().__init__()
        if config.num_shared_experts != 1:
            raise StartupError("this model needs exactly one shared expert in each layer")
        parallel = get_parallel()
        self.tp_size = parallel.tp_size
        sizes = config.hidden_size, config.moe_intermediate_size
        is_split = parallel.moe_ep_size > 1
        self.shared_experts = (
            ThinkerMLP(
                *sizes, quant_config, add_prefix("shared_experts", prefix), reduce_results=False
            )
            if is_split
            else None
        )
        stacked = 0 if is_split else 1
        self.router = MultiRouter(config, append_shared=not is_split)
        self.experts = get_moe_impl_class(quant_config)(
            num_experts=config.num_experts + stacked,
            num_fused_shared_experts=stacked,
            top_k=config.num_experts_per_tok + stacked,
            layer_id=layer_id,
            hidden_size=sizes[0],
            intermediate_size=sizes[1],
            quant_config=quant_config,
            prefix=add_prefix("experts", prefix),
        )
        if is_split and get_server_args().device == "cpu":
            self.experts.dispatcher = MaskedDispatcher(self.experts.moe_runner_config)
        self.decode_experts = build_decode_experts(self.router, self.experts)

    def forward(self, x: Tensor, routes: Tensor | None, skip_all_reduce: bool) -> Tensor:
        """Return the output [tokens, hidden].

        For small batches on one rank, returns the expert outputs [tokens, experts, hidden], which
        the norm after this module sums.
        """
        if self.decode_experts is not None and routes is None and 0 < len(x) <= MAX_ROWS:
            out = (
                self.decode_experts.compute_parts(x)
                if self.tp_size == 1
                else self.decode_experts(x)
            )
        else:
            out = self._compute_experts(x, routes)
        if self.tp_size == 1 or skip_all_reduce:
            return out
        if should_skip_post_experts_all_reduce(
            is_tp_path=True, use_reduce_scatter=False, should_allreduce_fusion=False
        ):
            return out
        return tensor_model_parallel_all_reduce(out)

    def _compute_experts(self, x: Tensor, routes: Tensor | None) -> Tensor:
        """Return this rank's summand of the output [tokens, hidden], with SGLang's kernels."""
        # First, because the routed experts may write their output over x.
        shared = None if self.shared_experts is None else self.shared_experts(x)
        routed: Tensor = self.experts(x, self.router(x, routes))
        return routed if shared is None else routed + shared


class ThinkerAttention(nn.Module):
    """Grouped-query attention over SGLang's paged cache, with QK-norm before partial rotary."""

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
        use_small_batch_gemm(self.query_key_value)
        self.dense = RowParallelLinear(
            config.num_attention_heads * self.head_dim,
            config.hidden_size,
            bias=False,
            quant_config=quant_config,
            reduce_results=False,
            prefix=add_prefix("dense", prefix),
            **ranks,
        )
        self.uses_small_batch_gemm = use_small_batch_gemm(self.dense)
        self.q_norm = RMSNorm(self.head_dim, eps=config.rms_norm_eps)
        self.k_norm = RMSNorm(self.head_dim, eps=config.rms_norm_eps)
        heads = config.num_attention_heads // parallel.attn_tp_size
        kv_heads = max(1, config.num_key_value_heads // parallel.attn_tp_size)
        self.heads = heads, kv_heads
        if self.uses_small_batch_gemm:
            # Before CUDA graphs are captured, whose memory is theirs alone.
            get_attention_workspace(heads, self.head_dim, self.dense.weight.device)
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
        """Return [tokens, hidden] of x [tokens, hidden]; k and v go to SGLang's cache."""
        qkv, _ = self.query_key_value(x)
        cache = self._select_cache(batch) if x.is_cuda else None
        q, k = (
            self._prepare_fused(qkv, inputs, cache)
            if x.is_cuda
            else self._prepare_reference(qkv, inputs)
        )
        v = qkv[:, -self.sizes[2] :]
        if self.uses_small_batch_gemm and cache is not None and supports_step(q, cache, batch):
            attended = attend_step(q, (k, v), cache, batch, self.heads, self.attn.scaling)
        else:
            attended = self.attn(q, k, v, batch, save_kv_cache=cache is None)
        out, _ = self.dense(attended)
        return out

    def _select_cache(self, batch: ForwardBatch) -> LayerKVCache | None:
        """Return this layer's KV cache, or None if its layout does not support fused writes."""
        if not enable_fused_set_kv_buffer(batch):
            return None
        pool, layer = get_token_to_kv_pool(), self.attn.layer_id
        return LayerKVCache(
            pool.get_key_buffer(layer), pool.get_value_buffer(layer), batch.out_cache_loc
        )

    def _prepare_fused(
        self, qkv: Tensor, inputs: StepInputs, cache: LayerKVCache | None
    ) -> tuple[Tensor, Tensor]:
        gains = self.q_norm.weight, self.k_norm.weight
        tables, eps = (inputs.cos, inputs.sin), self.q_norm.variance_epsilon
        pdl = self.uses_small_batch_gemm and len(qkv) <= MAX_ROWS
        prefetch_weight = (
            self.dense.weight
            if self.uses_small_batch_gemm and len(qkv) <= MAX_PREFETCH_ROWS
            else None
        )
        return prepare_queries_and_keys(
            qkv, gains, tables, self.heads, eps, cache, prefetch_weight, pdl=pdl
        )

    def _prepare_reference(self, qkv: Tensor, inputs: StepInputs) -> tuple[Tensor, Tensor]:
        q, k, _ = qkv.split(self.sizes, dim=-1)
        return self._normalize_and_rotate(q, self.q_norm, inputs), self._normalize_and_rotate(
            k, self.k_norm, inputs
        )

    def _normalize_and_rotate(self, x: Tensor, norm: RMSNorm, inputs: StepInputs) -> Tensor:
        normalized = norm(x.reshape(-1, self.head_dim)).view(x.shape[0], -1, self.head_dim)
        return apply_rotary(normalized, inputs.cos, inputs.sin).flatten(1)


class ThinkerLayer(nn.Module):
    """One pre-norm layer; SGLang's communicator fuses its norms with the all-reduces."""

    def __init__(
        self, config: Any, layer_id: int, quant_config: QuantizationConfig | None, prefix: str
    ) -> None:
        super().__init__()
        first_sparse, mlp = config.first_k_dense_replace, add_prefix("mlp", prefix)
        self.sparse = layer_id >= first_sparse
        self.input_layernorm = StepNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = StepNorm(config.hidden_size, eps=config.rms_norm_eps)
        attention = add_prefix("attention", prefix)
        self.attention = ThinkerAttention(config, layer_id, quant_config, attention)
        self.mlp = (
            ThinkerSparseMLP(config, layer_id, quant_config, mlp)
            if self.sparse
            else ThinkerMLP(config.hidden_size, config.intermediate_size, quant_config, mlp)
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
        """Run the layer on x [tokens, hidden]; return its output and the residual stream."""
        x, residual = self.communicator.prepare_attn(x, residual, batch)
        x = self.attention(x, inputs, batch)
        x, residual = self.communicator.prepare_mlp(x, residual, batch)
        fuse = self.communicator.should_fuse_mlp_allreduce_with_next_layer(batch)
        x = self.mlp(x, inputs.routes, fuse) if self.sparse else self.mlp(x, fuse)
        if fuse:
            # The norm of the next layer reduces; SGLang checks this attribute there.
            x._sglang_needs_allreduce_fusion = True  # type: ignore[attr-defined]
            return x, residual
        return self.communicator.postprocess_layer(x, residual, batch)
