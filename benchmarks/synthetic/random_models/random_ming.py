"""This project's thinker with random weights, registered with SGLang like the plug-in's."""

from collections.abc import Iterable
from typing import Any

import torch
from sglang.srt.configs.model_config import multimodal_model_archs
from sglang.srt.layers.logits_processor import LogitsProcessorOutput
from sglang.srt.managers.multimodal_processor import PROCESSOR_MAPPING
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from sglang.srt.runtime_context import get_parallel
from torch import Tensor

from benchmarks.synthetic.random_models.census import ExpertCensus
from benchmarks.synthetic.random_models.drawing import draw_parameters
from benchmarks.synthetic.random_models.names import PLUG_IN, SCRIPT
from benchmarks.synthetic.random_models.scripting import ScriptedAnswer
from sglang_omni.models.ming.thinker.layers import MultiRouter
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
from sglang_omni.models.ming.thinker.processor import MingProcessor


class RandomMingForConditionalGeneration(BailingMM2NativeForConditionalGeneration):
    """The plug-in's model, which ignores the thinker's weights in the checkpoint's files."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Draw the weights instead of reading them."""
        draw_parameters(self, get_parallel().tp_size)
        self.census = ExpertCensus(self.model.model, MultiRouter, get_parallel().tp_rank)
        self.script: ScriptedAnswer | None = None
        if ids := getattr(self.config, SCRIPT, None):
            device = next(self.get_input_embeddings().parameters()).device
            self.script = ScriptedAnswer(ids, self.config.llm_config.vocab_size, device)

    @torch.no_grad()
    def forward(
        self, input_ids: Tensor, positions: Tensor, forward_batch: ForwardBatch, **more: Any
    ) -> LogitsProcessorOutput:
        """Return the real logits.

        If there is a script, they make its next token the most likely.
        """
        output = super().forward(input_ids, positions, forward_batch, **more)
        if self.script is not None and output.next_token_logits is not None:
            decode = forward_batch.forward_mode.is_decode()
            self.script(output.next_token_logits, input_ids if decode else None)
        return output


PROCESSOR_MAPPING[RandomMingForConditionalGeneration] = MingProcessor
multimodal_model_archs.append(PLUG_IN)

EntryClass = RandomMingForConditionalGeneration
