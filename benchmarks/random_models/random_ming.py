"""This project's thinker with drawn weights, registered with SGLang as the plug-in's is."""

from collections.abc import Iterable

from sglang.srt.configs.model_config import multimodal_model_archs
from sglang.srt.managers.multimodal_processor import PROCESSOR_MAPPING
from sglang.srt.runtime_context import get_parallel
from torch import Tensor

from benchmarks.random_models.census import Census
from benchmarks.random_models.drawing import draw_parameters
from benchmarks.random_models.names import PLUG_IN
from sglang_omni.models.ming.thinker.layers import MultiRouter
from sglang_omni.models.ming.thinker.model import BailingMM2NativeForConditionalGeneration
from sglang_omni.models.ming.thinker.processor import MingProcessor


class RandomMingForConditionalGeneration(BailingMM2NativeForConditionalGeneration):
    """The plug-in's model; whatever the checkpoint's files hold of the thinker is ignored."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Draw the weights instead of reading them."""
        draw_parameters(self, get_parallel().tp_size)
        self.census = Census(self.model.model, MultiRouter, get_parallel().tp_rank)


PROCESSOR_MAPPING[RandomMingForConditionalGeneration] = MingProcessor
multimodal_model_archs.append(PLUG_IN)

EntryClass = RandomMingForConditionalGeneration
