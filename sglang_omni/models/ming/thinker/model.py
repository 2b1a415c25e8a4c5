"""The thinker model that SGLang serves."""

from collections.abc import Iterable
from typing import Any

import torch
from sglang.srt.distributed import get_tensor_model_parallel_rank
from sglang.srt.layers.logits_processor import LogitsProcessor, LogitsProcessorOutput
from sglang.srt.layers.quantization.base_config import QuantizationConfig
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding
from sglang.srt.managers.mm_utils import (
    MultiModalityDataPaddingPatternMultimodalTokens,
    general_mm_embed_routine,
)
from sglang.srt.managers.schedule_batch import MultimodalDataItem, MultimodalInputs
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.model_executor.runner_backend_utils.breakable_cuda_graph import (
    is_in_breakable_cuda_graph,
)
from sglang.srt.runtime_context import get_server_args
from sglang.srt.utils import add_prefix
from torch import Tensor, nn

from sglang_omni.models.ming.thinker.decode_norm import StepNorm
from sglang_omni.models.ming.thinker.fp8_layout import has_fp8_head
from sglang_omni.models.ming.thinker.head import build_head, set_logits_buffer
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.in_process_encoders import InProcessEncoders
from sglang_omni.models.ming.thinker.layers import StepInputs, ThinkerLayer
from sglang_omni.models.ming.thinker.loading import load_thinker
from sglang_omni.models.ming.thinker.prefill import allocate_captured_inputs
from sglang_omni.models.ming.thinker.query_states import collect_query_states, find_query_slices
from sglang_omni.models.ming.thinker.ranks import check_ranks
from sglang_omni.models.ming.thinker.rope import (
    assign_frequency_axes,
    compute_inverse_frequencies,
    compute_rotary_tables,
)
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE, TEXT
from sglang_omni.models.ming.thinker.stored_forms import read_stored_form
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.system.progress import report_progress
from sglang_omni.system.timer_slack import restore_exact_timers


class ThinkerDecoder(nn.Module):
    """Embeddings, layers and the final norm."""

    inv_freq: Tensor
    axes: Tensor

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
        # Always on the CPU: float32 powers differ between devices in the last bit.
        with torch.device("cpu"):
            frequencies = compute_inverse_frequencies(config.rotary_dim, rope["rope_theta"])
        axes = torch.tensor(assign_frequency_axes(rope["mrope_section"]))
        device = self.norm.weight.device
        self.register_buffer("inv_freq", frequencies.to(device), persistent=False)
        self.register_buffer("axes", axes.to(device), persistent=False)
        self.captured = allocate_captured_inputs(config.hidden_size, device)
        if self.captured is not None:
            self.register_forward_pre_hook(self._fill_captured, with_kwargs=True)

    def get_input_embeddings(self) -> nn.Module:
        """Return the token embedding, into whose output SGLang inserts features."""
        return self.word_embeddings

    def forward(
        self,
        input_ids: Tensor | None,
        positions: Tensor,
        forward_batch: ForwardBatch,
        input_embeds: Tensor | None,
        routes: Tensor | None = None,
    ) -> Tensor:
        """Return the final hidden states [tokens, hidden]; `positions` is [3, tokens].

        To capture prefill graphs, SGLang calls this without embeddings and with text positions.
        """
        x = input_embeds
        if x is None:
            assert self.captured is not None
            assert input_ids is not None
            x, routes = self.captured.select_first(len(input_ids))
            positions = forward_batch.mrope_positions
        inputs = StepInputs(*compute_rotary_tables(positions, self.inv_freq, self.axes), routes)
        residual = None
        for layer in self.layers:
            x, residual = layer(x, residual, inputs, forward_batch)
        if forward_batch.forward_mode.is_idle():
            return x
        x, _ = self.norm(x, residual)
        return x

    def _fill_captured(self, _module: nn.Module, _args: Any, inputs: dict[str, Any]) -> None:
        """Fill the inputs of the captured graphs before a call that SGLang replays from them."""
        if self.captured is not None and is_in_breakable_cuda_graph():
            self.captured.fill(inputs["input_embeds"], inputs["routes"])


class LanguageModel(nn.Module):
    """Decoder and head, under the tensor names of the checkpoint."""

    def __init__(
        self,
        config: Any,
        quant_config: QuantizationConfig | None,
        prefix: str = "",
        fp8_head: bool = False,
    ) -> None:
        super().__init__()
        self.model = ThinkerDecoder(config, quant_config, add_prefix("model", prefix))
        self.lm_head = build_head(config, fp8_head, add_prefix("lm_head", prefix))


class BailingMM2NativeForConditionalGeneration(nn.Module):
    """The architecture of the checkpoint: the language model, and optionally the encoders.

    Without encoders, images, video frames and audio must arrive as precomputed embedding rows, and
    the encoder tensors of the checkpoint are skipped.
    """

    def __init__(
        self,
        config: MingConfig,
        quant_config: QuantizationConfig | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__()
        # Process groups and their threads exist by now; the threads of a step start later.
        restore_exact_timers()
        check_ranks()
        self.config = config
        quantization = getattr(config, "quantization_config", None)
        self.stored_form = read_stored_form(quantization)
        self.model = LanguageModel(
            config.llm_config,
            quant_config,
            add_prefix("model", prefix),
            fp8_head=has_fp8_head(quantization),
        )
        self.logits_processor = LogitsProcessor(config.llm_config)
        self.encoders = InProcessEncoders(config, prefix) if config.has_encoders else None

    @property
    def language_model(self) -> nn.Module:
        """Return the module with the layers; SGLang finds it by this name to capture prefills."""
        return self.model

    def get_input_embeddings(self) -> nn.Module:
        """Return the token embedding."""
        return self.model.model.word_embeddings

    def pad_input_ids(self, input_ids: list[int], mm_inputs: MultimodalInputs) -> list[int]:
        """Replace placeholders by content hashes, so that the radix cache distinguishes media."""
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
        """Return the logits of the last token of each request."""
        # Call these before the embedding routine, which clears the multimodal inputs of the batch.
        routes = compute_route_ids(forward_batch, input_ids)
        queries = find_query_slices(forward_batch)
        hidden = general_mm_embed_routine(
            input_ids=input_ids,
            forward_batch=forward_batch,
            language_model=self.model.model,
            multimodal_model=self,
            positions=forward_batch.mrope_positions,
            routes=routes,
        )
        set_logits_buffer(self.model.lm_head, forward_batch.next_token_logits_buffer)
        output = self.logits_processor(input_ids, hidden, self.model.lm_head, forward_batch)
        # Every rank has the states; one of them writes them.
        if queries and get_tensor_model_parallel_rank() == 0:
            requests = len(forward_batch.extend_seq_lens_cpu)
            output.customized_info = collect_query_states(queries, hidden, requests)
        return output

    def get_image_feature(self, items: list[MultimodalDataItem]) -> Tensor:
        """Encode images or videos without precomputed embeddings: rows [tokens, hidden]."""
        return self._require_encoders().compute_image_features(items)

    get_video_feature = get_image_feature

    def get_audio_feature(self, items: list[MultimodalDataItem]) -> Tensor:
        """Encode audio without precomputed embeddings: rows [tokens, hidden]."""
        return self._require_encoders().compute_audio_features(items)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Load the checkpoint strictly; raise `CheckpointError` if it does not fit."""
        report_progress("reading the thinker's weights")
        encoder_fillers = self.encoders.fillers() if self.encoders else ()
        load_thinker(self, self.config.llm_config, weights, encoder_fillers, self.stored_form)
        # What SGLang does next.
        captures = " and capturing graphs" if get_server_args().device == "cuda" else ""
        report_progress(f"allocating the KV cache{captures}")

    def _require_encoders(self) -> InProcessEncoders:
        if self.encoders is None:
            raise InvalidRequest("media must arrive as precomputed embeddings", param="messages")
        return self.encoders


def compute_route_ids(batch: ForwardBatch, input_ids: Tensor) -> Tensor | None:
    """Return the route ids [tokens] of a prefill with media; None if every token is text."""
    if batch.forward_mode.is_decode() or not batch.contains_mm_inputs():
        return None
    routes = torch.full((len(input_ids),), TEXT, dtype=torch.uint8)
    start = 0
    for index, (prefix, length) in enumerate(
        zip(batch.extend_prefix_lens_cpu, batch.extend_seq_lens_cpu, strict=True)
    ):
        for router, first, last in _iter_spans(batch.mm_inputs[index]):
            # Offsets are relative to the prompt; the batch holds its tokens [prefix, prefix +
            # length).
            start_offset, end_offset = max(first - prefix, 0), min(last + 1 - prefix, length)
            if start_offset < end_offset:
                routes[start + start_offset : start + end_offset] = router
        start += length
    return routes.to(input_ids.device, non_blocking=True)


def _iter_spans(inputs: MultimodalInputs | None) -> Iterable[tuple[int, int, int]]:
    """Yield (router, first, last) of each placeholder run of one request; `last` is inclusive."""
    if inputs is None:
        return
    for item in inputs.mm_items:
        router = AUDIO if item.is_audio() else IMAGE
        for first, last in item.offsets:
            yield router, first, last
