"""The thinker's output head with an FP8 weight, for SGLang's `LogitsProcessor`.

The head's product is the largest of a decode step, and bound by reading the weight. Up to
`MAX_ROWS` rows go through the small-batch kernel, which writes float32: the logits become float32
anyhow. More rows go through SGLang's FP8 product. CPUs dequantize the weight once.
"""

from typing import Any

import torch
import torch.nn.functional as F
from sglang.srt.layers.quantization.fp8 import Fp8Config, Fp8LinearMethod
from sglang.srt.layers.vocab_parallel_embedding import ParallelLMHead
from sglang.srt.runtime_context import get_parallel, get_server_args
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.decode_moe import supports_decode_kernels
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK, QUANTIZATION_CONFIG
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
    MAX_ROWS,
    get_workspace,
    small_batch_linear,
)
from sglang_omni.protocol.errors import StartupError


def build_head(config: Any, fp8: bool, prefix: str) -> ParallelLMHead:
    """Build the head of a text configuration; its weight is in FP8 or keeps its dtype.

    Raises:
        StartupError: An option of SGLang needs a head that is not in FP8.
    """
    sizes = config.vocab_size, config.hidden_size
    if not fp8:
        return ParallelLMHead(*sizes, prefix=prefix)
    # Each rank has whole blocks, so that it has whole scales. The logits of padding are cut off.
    padding = BLOCK * get_parallel().tp_size
    quant_config = Fp8HeadConfig.from_config(dict(QUANTIZATION_CONFIG))
    return ParallelLMHead(*sizes, padding_size=padding, quant_config=quant_config, prefix=prefix)


def set_logits_buffer(head: ParallelLMHead, buffer: Tensor | None) -> None:
    """Tell the head where SGLang wants the next logits, so that they need not be copied there."""
    if isinstance(head.quant_method, Fp8HeadMethod):
        head.quant_method.logits_buffer = buffer


class Fp8HeadConfig(Fp8Config):
    """SGLang's FP8 configuration, which by itself leaves a head out."""

    def get_quant_method(self, layer: nn.Module, prefix: str) -> "Fp8HeadMethod":
        """Return the method of a head."""
        del layer, prefix
        return Fp8HeadMethod(self)


class Fp8HeadMethod(Fp8LinearMethod):
    """Creates, loads and multiplies a head in blocks of FP8.

    `logits_buffer` is float32 [rows, vocabulary] or None. A small batch of as many rows is written
    to it; `LogitsProcessor` copies no logits that are its buffer already.
    """

    logits_buffer: Tensor | None = None

    def create_weights(
        self,
        layer: Any,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        skip_block_quant_check: bool = False,
        **extra_weight_attrs: Any,
    ) -> None:
        """Register `weight` and `weight_scale_inv`, of which each rank has its rows."""
        if get_server_args().enable_fp32_lm_head:
            raise StartupError(
                "thinker.server_args: enable_fp32_lm_head needs a head that is not in FP8 "
                "(`sgl-omni quantize --head bf16`)"
            )
        # The sizes that this class takes for granted are those of `build_head`.
        assert output_size % (BLOCK * layer.tp_size) == 0
        super().create_weights(
            layer,
            input_size_per_partition,
            output_partition_sizes,
            input_size,
            output_size,
            params_dtype,
            skip_block_quant_check,
            **extra_weight_attrs,
        )
        scale = torch.zeros_like(layer.weight_scale_inv.data)
        first_block = layer.shard_indices.org_vocab_start_index // BLOCK
        layer.weight_scale_inv = _build_scale(scale, first_block)
        on_gpu = layer.weight.is_cuda and supports_decode_kernels()
        self._workspace = get_workspace(layer.weight.device) if on_gpu else None

    def process_weights_after_loading(self, layer: Any) -> None:
        """Prepare the weight for SGLang's product; on a CPU, dequantize it."""
        if layer.weight.is_cuda:
            super().process_weights_after_loading(layer)
            return
        weight = dequantize_weight(layer.weight.data, layer.weight_scale_inv.data)
        layer.weight = nn.Parameter(weight.to(layer.orig_dtype), requires_grad=False)

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the logits [rows, vocabulary of this rank], in float32 or the dtype of x."""
        if not layer.weight.is_cuda:
            return F.linear(x, layer.weight, bias)
        if self._workspace is None or bias is not None or not 0 < len(x) <= MAX_ROWS:
            return super().apply(layer, x, bias)
        return small_batch_linear(
            x,
            layer.weight,
            layer.weight_scale_inv,
            self._workspace,
            pdl=True,
            out=self._select_output(layer, x),
        )

    def _select_output(self, layer: Any, x: Tensor) -> Tensor:
        """Return where the logits of x go.

        SGLang's buffer has the shape of the whole logits; it is not for a part of the vocabulary.
        """
        shape = len(x), len(layer.weight)
        if self.logits_buffer is not None and self.logits_buffer.shape == shape:
            return self.logits_buffer
        # Ranks exchange logits, which takes less time in the dtype of x.
        dtype = torch.float32 if layer.tp_size == 1 else x.dtype
        return torch.empty(shape, dtype=dtype, device=x.device)


def _build_scale(blocks: Tensor, first_block: int) -> nn.Parameter:
    """Return a parameter of scales [row blocks, column blocks] and its loader.

    The loader takes the scales of the whole vocabulary. This rank's begin with `first_block`; those
    of padding stay zero.
    """

    def load(parameter: nn.Parameter, scales: Tensor) -> None:
        share = scales[first_block : first_block + len(parameter)]
        parameter.data[: len(share)].copy_(share)

    parameter: Any = nn.Parameter(blocks, requires_grad=False)
    parameter.weight_loader = load
    return parameter
