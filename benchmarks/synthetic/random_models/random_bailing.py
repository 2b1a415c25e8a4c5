"""SGLang's own text-only BailingMoeV2 with random weights."""

from collections.abc import Iterable
from typing import Any

from sglang.srt.layers.moe.topk import TopK
from sglang.srt.models.bailing_moe import BailingMoeV2ForCausalLM
from sglang.srt.runtime_context import get_parallel
from torch import Tensor
from transformers import AutoConfig, PretrainedConfig

from benchmarks.synthetic.random_models.census import ExpertCensus
from benchmarks.synthetic.random_models.drawing import draw_parameters
from benchmarks.synthetic.random_models.names import STOCK_TYPE


class RandomBailingConfig(PretrainedConfig):
    """The text configuration with the rope dictionary that SGLang reads."""

    model_type = STOCK_TYPE

    def __init__(self, rope_theta: float = 10_000.0, **values: Any) -> None:
        values.pop("rope_parameters", None)
        super().__init__(**values)
        self.rope_theta = rope_theta
        self.rope_parameters = {"rope_type": "default", "rope_theta": rope_theta}


AutoConfig.register(STOCK_TYPE, RandomBailingConfig, exist_ok=True)


class RandomBailingMoeV2ForCausalLM(BailingMoeV2ForCausalLM):
    """SGLang's model, which ignores the weights of the checkpoint's files."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], is_nextn: bool = False) -> None:
        """Draw the weights instead of reading them."""
        draw_parameters(self, get_parallel().tp_size)
        self.census = ExpertCensus(self.model, TopK, get_parallel().tp_rank)


EntryClass = RandomBailingMoeV2ForCausalLM
