"""Attention of a decode step by our kernel: which steps it takes, and what it reads of a batch."""

from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.model_executor.forward_context import get_req_to_token_pool
from torch import Tensor

from sglang_omni.models.ming.thinker.attention_triton import CachedTokens, attend
from sglang_omni.models.ming.thinker.rope_triton import LayerKVCache
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import MAX_ROWS


def supports_step(query: Tensor, cache: LayerKVCache, batch: ForwardBatch) -> bool:
    """Return whether our kernel takes a batch: few rows of one new token, in the cache's dtype."""
    return (
        batch.forward_mode.is_decode()
        and 0 < len(query) <= MAX_ROWS
        and cache.keys.dtype == query.dtype
    )


def attend_step(
    query: Tensor,
    newest: tuple[Tensor, Tensor],
    cache: LayerKVCache,
    batch: ForwardBatch,
    heads: tuple[int, int],
    scale: float,
) -> Tensor:
    """Return the attention [rows, heads * head_dim] of a decode step of SGLang's.

    `newest` are the keys and values of the new tokens; the other arguments are those of `attend`.
    """
    cached = CachedTokens(
        cache.keys,
        cache.values,
        get_req_to_token_pool().req_to_token,
        batch.req_pool_indices,
        batch.seq_lens,
    )
    return attend(query, newest, cached, heads, scale, pdl=True)
