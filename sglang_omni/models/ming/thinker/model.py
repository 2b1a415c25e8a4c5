"""The thinker as SGLang serves it."""

from collections.abc import Iterable
from typing import Any

import torch
from sglang.srt.distributed import get_pp_group
from sglang.srt.layers.logits_processor import LogitsProcessor, LogitsProcessorOutput
from sglang.srt.layers.quantization.base_config import QuantizationConfig
from sglang.srt.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding
from sglang.srt.managers.mm_utils import (
    MultiModalityDataPaddingPatternMultimodalTokens,
    general_mm_embed_routine,
)
from sglang.srt.managers.schedule_batch import MultimodalDataItem, MultimodalInputs
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.model_executor.runner_backend_utils.breakable_cuda_graph import (
    is_in_breakable_cuda_graph,
)
from sglang.srt.utils import add_prefix
from torch import Tensor, nn

from sglang_omni.engines.runtime.timer_slack import restore_exact_timers
from sglang_omni.models.ming.thinker.decode_norm import StepNorm
from sglang_omni.models.ming.thinker.fp8_layout import block_fp8
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.in_process_encoders import InProcessEncoders
from sglang_omni.models.ming.thinker.layers import StepInputs, ThinkerLayer
from sglang_omni.models.ming.thinker.loading import load_thinker
from sglang_omni.models.ming.thinker.prefill import captured_inputs
from sglang_omni.models.ming.thinker.rope import cos_sin, frequency_rows, inverse_frequencies
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE, TEXT
from sglang_omni.protocol.errors import InvalidRequest, StartupError


class ThinkerDecoder(nn.Module):
    """Embeddings, layers and the final norm."""

    inv_freq: Tensor
    rows: Tensor

    def __init__(
        self, config: Any, quant_config: QuantizationConfig | None = None, prefix: str = ""
    ) -> None:
        super().__init__()
        self.word_embeddings = VocabParallelEmbedding(
            config.vocab_size,
            config.hidden_size,
            prefix=add_prefix("word_embeddings", prefix),
        )
        self.layers = nn.ModuleList(
            ThinkerLayer(config, index, quant_config, add_prefix(f"layers.{index}", prefix))
            for index in range(config.num_hidden_layers)
        )
        self.norm = StepNorm(config.hidden_size, eps=config.rms_norm_eps)
        rope = config.rope_parameters
        # On the CPU, whatever device models are built on: float32 powers differ in the last bit.
        with torch.device("cpu"):
            frequencies = inverse_frequencies(config.rotary_dim, rope["rope_theta"])
        rows = torch.tensor(frequency_rows(rope["mrope_section"]))
        device = self.norm.weight.device
        self.register_buffer("inv_freq", frequencies.to(device), persistent=False)
        self.register_buffer("rows", rows.to(device), persistent=False)
        self.captured = captured_inputs(config.hidden_size, device)
        if self.captured is not None:
            self.register_forward_pre_hook(self._fill_captured, with_kwargs=True)

    def get_input_embeddings(self) -> nn.Module:
        """The token embedding, which SGLang splices features into."""
        return self.word_embeddings

    def forward(
        self,
        input_ids: Tensor | None,
        positions: Tensor,
        forward_batch: ForwardBatch,
        input_embeds: Tensor | None,
        routes: Tensor | None = None,
    ) -> Tensor:
        """Final hidden states [tokens, hidden]; `positions` is [3, tokens].

        SGLang captures prefills by calling this without embeddings, and with positions of text.
        """
        x = input_embeds
        if x is None:
            assert self.captured is not None and input_ids is not None
            x, routes = self.captured.first(len(input_ids))
            positions = forward_batch.mrope_positions
        inputs = StepInputs(*cos_sin(positions, self.inv_freq, self.rows), routes)
        residual = None
        for layer in self.layers:
            x, residual = layer(x, residual, inputs, forward_batch)
        if forward_batch.forward_mode.is_idle():
            return x
        x, _ = self.norm(x, residual)
        return x

    def _fill_captured(self, _module: nn.Module, _args: Any, inputs: dict[str, Any]) -> None:
        """Before a call that SGLang answers by replaying graphs."""
        if self.captured is not None and is_in_breakable_cuda_graph():
            self.captured.fill(inputs["input_embeds"], inputs["routes"])


class LanguageModel(nn.Module):
    """Decoder and head, under the checkpoint's names."""

    def __init__(
        self, config: Any, quant_config: QuantizationConfig | None, prefix: str = ""
    ) -> None:
        super().__init__()
        self.model = ThinkerDecoder(config, quant_config, add_prefix("model", prefix))
        self.lm_head = ParallelLMHead(
            config.vocab_size, config.hidden_size, prefix=add_prefix("lm_head", prefix)
        )


class BailingMM2NativeForConditionalGeneration(nn.Module):
    """The checkpoint's architecture: the language model and, if it is to carry them, the encoders.

    Without encoders images, frames and clips must arrive as precomputed embedding rows; the
    encoder tensors of the checkpoint are then skipped by name.
    """

    def __init__(
        self,
        config: MingConfig,
        quant_config: QuantizationConfig | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__()
        # The process groups and their threads are made; those of a step come later.
        restore_exact_timers()
        if get_pp_group().world_size > 1:
            raise StartupError("this model does not support pipeline parallelism; use --tp-size")
        self.config = config
        self.fp8 = block_fp8(getattr(config, "quantization_config", None))
        self.model = LanguageModel(config.llm_config, quant_config, add_prefix("model", prefix))
        self.logits_processor = LogitsProcessor(config.llm_config)
        self.encoders = InProcessEncoders(config, prefix) if config.carries_encoders else None

    @property
    def language_model(self) -> nn.Module:
        """What holds the layers, by the name under which SGLang looks to capture prefills."""
        return self.model

    def get_input_embeddings(self) -> nn.Module:
        """The token embedding."""
        return self.model.model.word_embeddings

    def pad_input_ids(self, input_ids: list[int], mm_inputs: MultimodalInputs) -> list[int]:
        """Replace placeholders by content hashes, so that the radix cache tells media apart."""
        return MultiModalityDataPaddingPatternMultimodalTokens().pad_input_tokens(
            input_ids, mm_inputs
        )

    @torch.no_grad()
    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        forward_batch: ForwardBatch,
        **_: Any,
    ) -> LogitsProcessorOutput:
        """Logits of the last token of each request."""
        # Before the embedding routine, which clears the batch's multimodal inputs.
        routes = route_ids(forward_batch, input_ids)
        hidden = general_mm_embed_routine(
            input_ids=input_ids,
            forward_batch=forward_batch,
            language_model=self.model.model,
            multimodal_model=self,
            positions=forward_batch.mrope_positions,
            routes=routes,
        )
        return self.logits_processor(input_ids, hidden, self.model.lm_head, forward_batch)

    def get_image_feature(self, items: list[MultimodalDataItem]) -> Tensor:
        """Feature rows of images or videos that came without precomputed embeddings."""
        return self._own_encoders().picture_features(items)

    get_video_feature = get_image_feature

    def get_audio_feature(self, items: list[MultimodalDataItem]) -> Tensor:
        """Feature rows of clips that came without precomputed embeddings."""
        return self._own_encoders().clip_features(items)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Load the checkpoint strictly. Raises `CheckpointError`."""
        fillers = self.encoders.fillers() if self.encoders else ()
        load_thinker(self, self.config.llm_config, weights, fillers, self.fp8)

    def _own_encoders(self) -> InProcessEncoders:
        if self.encoders is None:
            raise InvalidRequest("media must arrive as precomputed embeddings", param="messages")
        return self.encoders


def route_ids(batch: ForwardBatch, input_ids: Tensor) -> Tensor | None:
    """Route ids [tokens] of a prefill with media; None when every token is text."""
    if batch.forward_mode.is_decode() or not batch.contains_mm_inputs():
        return None
    routes = torch.full((len(input_ids),), TEXT, dtype=torch.uint8)
    start = 0
    for index, (prefix, length) in enumerate(
        zip(batch.extend_prefix_lens_cpu, batch.extend_seq_lens_cpu, strict=True)
    ):
        for router, first, last in _spans(batch.mm_inputs[index]):
            # Offsets count from the prompt's start; this batch holds [prefix, prefix + length).
            low, high = max(first - prefix, 0), min(last + 1 - prefix, length)
            if low < high:
                routes[start + low : start + high] = router
        start += length
    return routes.to(input_ids.device, non_blocking=True)


def _spans(inputs: MultimodalInputs | None) -> Iterable[tuple[int, int, int]]:
    """(router, first, last) of each placeholder run of one request; `last` is inclusive."""
    if inputs is None:
        return
    for item in inputs.mm_items:
        router = AUDIO if item.is_audio() else IMAGE
        for first, last in item.offsets:
            yield router, first, last
