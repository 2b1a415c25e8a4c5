"""The warm-up asks for every bucket of prompts before the thinker is ready."""

from itertools import pairwise
from typing import Any

import pytest

from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.engines.thinker.launch import PREFILL_GRAPH_SIZES
from sglang_omni.engines.thinker.moe_configs import CONFIG_ROOT
from sglang_omni.engines.thinker.warm_up import SAMPLING, list_buckets, list_prompts, warm_up
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.thinker.int4.tilings import DEFAULT_TILINGS
from sglang_omni.system.progress import set_progress_reporter

CHUNK = 8192
INFO = ThinkerInfo(32_768, 65_536, 64)


class RecordingEngine:
    """Remembers what it is asked."""

    def __init__(self) -> None:
        self.prompts: list[list[int]] = []
        self.batches: list[int] = []

    def generate(self, *, input_ids: Any, sampling_params: dict[str, Any]) -> None:
        prompts = input_ids if isinstance(input_ids[0], list) else [input_ids]
        self.prompts += prompts
        self.batches.append(len(prompts))


def warmed_up(
    info: ThinkerInfo = INFO, chunk: int = CHUNK, prompts: bool = True
) -> RecordingEngine:
    engine = RecordingEngine()
    warm_up(engine, info, chunk, prompts=prompts)
    return engine


def nearest(sizes: list[int], tokens: int) -> int:
    return min(sizes, key=lambda size: abs(size - tokens))


def test_every_kernel_configuration_that_a_prompt_may_use_is_asked_for() -> None:
    lengths = {len(prompt) for prompt in warmed_up().prompts}
    files = list(CONFIG_ROOT.glob("**/*.json"))
    assert files
    # What SGLang ships for other GPUs, besides.
    common = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096]
    for sizes in (common, *([int(size) for size in read_json(file)] for file in files)):
        used = {nearest(sizes, tokens) for tokens in range(32, CHUNK + 1)}
        for is_multiple in (True, False):
            asked = [length for length in lengths if (length % 16 == 0) == is_multiple]
            assert used <= {nearest(sizes, length) for length in asked}
    # Our own in four bits, by upper limit.
    limits = sorted(DEFAULT_TILINGS)
    for low, high in pairwise(limits):
        if high > 64:
            assert any(low < length <= high for length in lengths), (low, high)


def test_prompts_longer_and_shorter_than_the_captured_graphs_are_asked_for() -> None:
    lengths = {len(prompt) for prompt in warmed_up().prompts}
    assert min(lengths) < min(PREFILL_GRAPH_SIZES) + 1
    assert max(lengths) == CHUNK
    assert len([length for length in lengths if length > max(PREFILL_GRAPH_SIZES)]) >= 8


def test_no_prompt_is_found_in_the_cache_and_prompts_come_together_too() -> None:
    engine = warmed_up()
    # The first four to five sample.
    first_tokens = [prompt[0] for prompt in engine.prompts[len(SAMPLING) + 1 :]]
    assert len(set(first_tokens)) == len(first_tokens)
    assert {1, 2, 16} <= set(engine.batches)


@pytest.mark.parametrize(
    ("info", "chunk", "longest"),
    [
        (INFO, 2048, 2048),
        (INFO, -1, 32_766),
        (ThinkerInfo(1000, 65_536, 64), CHUNK, 998),
        (ThinkerInfo(4096, 600, 64), CHUNK, 598),
    ],
)
def test_no_prompt_is_longer_than_a_prefill_can_be(
    info: ThinkerInfo, chunk: int, longest: int
) -> None:
    assert max(batch.tokens for batch in list_prompts(info, chunk)) == longest


def test_buckets_are_multiples_of_16_up_to_the_last() -> None:
    assert list_buckets(100) == [16, 24, 32, 48, 64, 96, 100]
    assert list_buckets(64) == [16, 24, 32, 48, 64]
    assert [length % 16 for length in list_buckets(CHUNK)[3:]] == [0] * len(list_buckets(CHUNK)[3:])


def test_it_says_what_it_does_and_can_do_without_prompts() -> None:
    said: list[str] = []
    set_progress_reporter(said.append)
    warmed_up()
    assert said == ["warming up the thinker", f"warming up prompts of up to {CHUNK} tokens"]
    engine = warmed_up(prompts=False)
    assert max(len(prompt) for prompt in engine.prompts) == 2
    assert len(engine.prompts) == len(SAMPLING) + 1
