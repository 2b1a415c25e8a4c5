"""The thinker on a CUDA device, with graphs of prefills and of decoding.

The first tokens are those of the released model. Half precision, because SGLang has no float32 norm
kernel for GPUs. Its rounding flips an expert of this tiny model sooner or later, so only the first
tokens are held; float16 rounds finer than bfloat16, in which the CPU engine leaves the float32
tokens at the first flip, too.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.thinker.contract import ThinkerRequest, ThinkerSettings
from sglang_omni.engines.thinker.kv_cache import FP8
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.entrypoints.cli.quantize import quantize
from sglang_omni.models.base import WeightForm
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import ThinkerReference, load_reference
from sglang_omni.protocol.sampling import SamplingParams
from tests.engines.thinker.test_int4 import build_model, read_dequantized
from tests.entrypoints.cli.quantised import write_wide_checkpoint
from tests.models.ming.thinker.features import greedy_request
from tests.testing.golden import TINY, Case, cases, load_case

pytestmark = pytest.mark.gpu

HELD = 4

SETTINGS = ThinkerSettings(
    TINY,
    device="cuda",
    dtype="float16",
    max_total_tokens=8192,
    max_running_requests=8,
    mem_fraction_static=0.3,
    server_args=(
        ("attention_backend", "triton"),
        ("grammar_backend", "none"),
        ("sampling_backend", "pytorch"),
        ("cuda_graph_max_bs_decode", 8),
    ),
)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("prefill", ["breakable", "disabled"])
async def test_greedy_tokens_agree_on_gpus_with_graphs(ranks: int, prefill: str) -> None:
    if torch.cuda.device_count() < ranks:
        pytest.skip(f"needs {ranks} CUDA devices")
    config = MingConfig.from_pretrained(TINY)
    options = (*SETTINGS.server_args, ("cuda_graph_backend_prefill", prefill))
    settings = replace(SETTINGS, tp_size=ranks, server_args=options)
    factory = "sglang_omni.engines.thinker.worker:open_worker"
    process = EngineProcess(
        ProcessSpec(
            "thinker", factory, settings, build_environment(settings, 1), start_deadline_s=400
        )
    )
    await process.start()
    try:
        goldens = [load_case(name) for name in cases("thinker", "greedy_")]
        for case in [*goldens, *goldens]:
            await _hold(process, config, case)
        # A prefill of several requests has media of some among the text of others.
        await asyncio.gather(*(_hold(process, config, case) for case in goldens))
    finally:
        await process.stop()


async def _hold(process: EngineProcess, config: MingConfig, case: Case) -> None:
    outputs = process.submit(greedy_request(case, config))
    ids = [token async for output in outputs for token in output.token_ids]
    assert ids[:HELD] == case["generated_ids"][:HELD].tolist()


# Of the vocabulary's 1920 tokens, these many are near the best.
NEAR = 10


async def test_eight_bits_say_what_the_plain_model_finds_likely(tmp_path: Path) -> None:
    source, target = tmp_path / "bf16", tmp_path / "fp8"
    write_wide_checkpoint(source)
    quantize(source, target)
    await _check_likely(
        target, load_reference(source, MingConfig.from_pretrained(source).llm_config)
    )


async def test_four_bits_say_what_a_plain_model_of_them_finds_likely(tmp_path: Path) -> None:
    source, target = tmp_path / "bf16", tmp_path / "int4"
    write_wide_checkpoint(source)
    quantize(source, target, WeightForm.INT4)
    await _check_likely(target, build_model(source, dict(read_dequantized(source, target))))


@pytest.mark.parametrize("backend", ["triton", "flashinfer", "fa3"])
async def test_a_cache_in_eight_bits_keeps_what_is_likely(tmp_path: Path, backend: str) -> None:
    write_wide_checkpoint(tmp_path)
    model = load_reference(tmp_path, MingConfig.from_pretrained(tmp_path).llm_config)
    arguments = {**dict(SETTINGS.server_args), "attention_backend": backend}
    changed = replace(SETTINGS, kv_cache_dtype=FP8, server_args=tuple(arguments.items()))
    await _check_likely(tmp_path, model, changed)


async def _check_likely(
    target: Path, model: ThinkerReference, settings: ThinkerSettings = SETTINGS
) -> None:
    """The engine's first tokens are among the plain model's likeliest."""
    settings = replace(settings, checkpoint=target, dtype="bfloat16")
    factory = "sglang_omni.engines.thinker.worker:open_worker"
    process = EngineProcess(
        ProcessSpec(
            "thinker", factory, settings, build_environment(settings, 1), start_deadline_s=400
        )
    )
    await process.start()
    try:
        for seed in range(8):
            generator = torch.Generator().manual_seed(seed)
            ids = torch.randint(300, 800, (24,), generator=generator)
            request = ThinkerRequest(tuple(ids.tolist()), SamplingParams(max_tokens=1))
            (token,) = [t async for out in process.submit(request) for t in out.token_ids]
            positions, text = torch.arange(24).expand(3, -1), torch.zeros(24, dtype=torch.uint8)
            with torch.no_grad():
                logits = model(model.model.word_embeddings(ids), positions, text)[-1]
            assert token in logits.topk(NEAR).indices.tolist(), seed
    finally:
        await process.stop()
