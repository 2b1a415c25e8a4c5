"""The running SGLang engine returns the released model's states at query tokens.

On one rank, prefill chunks of 16 tokens cut the query tokens, and the prompt before them may come
from the radix cache.
"""

import asyncio
import secrets

import pytest
import torch
from safetensors.torch import load_file

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.thinker.contract import (
    Features,
    QueryTokens,
    ThinkerOutput,
    ThinkerRequest,
)
from sglang_omni.models.ming.image.query_tokens import append_query_block
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.protocol.sampling import SamplingParams
from tests.models.ming.thinker.features import content_hash, greedy_request, shared
from tests.testing.golden import Case, assert_close, cases, file_of, load_case, require_case

CASES = ("t2i_plain", "t2i_glyph", "edit")
QUERY_FILE = "image/tiny_image_checkpoint/mlp/model.safetensors"

# Starts two engines of its own.
pytestmark = [pytest.mark.extended, pytest.mark.asyncio(loop_scope="session")]


def load(name: str) -> Case:
    require_case(f"image/e2e/{name}")
    return load_case(f"image/e2e/{name}")


def image_request(case: Case, config: MingConfig, unique: int | None = None) -> ThinkerRequest:
    rows = load_file(file_of(QUERY_FILE))["query_tokens_dict.4x4"].float()
    patch = config.llm_config.image_patch_token
    ids = case["input_ids"][0]
    prompt = append_query_block(ids.tolist(), patch, len(rows))
    features = []
    if "image_embeds" in case.tensors:
        places = (ids == patch).nonzero().flatten()
        run = (int(places[0]), int(places[-1]))
        embeds = case["image_embeds"].numpy()
        (grid,) = map(tuple, case["image_grid_thw"].tolist())
        features.append(Features("image", *shared(embeds), (run,), content_hash(embeds), (grid,)))
    embeddings = Features(
        "image",
        *shared(rows.numpy()),
        (prompt.run,),
        secrets.randbits(64) if unique is None else unique,
        (prompt.grid,),
    )
    query = QueryTokens(embeddings, SharedArray())
    sampling = SamplingParams(max_tokens=1, temperature=0.0)
    return ThinkerRequest(prompt.ids, sampling, tuple(features), query=query)


async def generate(process: EngineProcess, request: ThinkerRequest) -> list[ThinkerOutput]:
    return [output async for output in process.submit(request)]


async def check_states(process: EngineProcess, case: Case, config: MingConfig) -> ThinkerOutput:
    request = image_request(case, config)
    (output,) = await generate(process, request)
    assert request.query is not None
    assert output.query_states is not None
    states = torch.from_numpy(request.query.states.read(output.query_states).copy())
    assert_close(states[None], case["query_hidden"], case.tolerance("query_hidden"))
    return output


@pytest.mark.parametrize("name", CASES)
async def test_states_with_chunked_prefill_and_radix_hits(
    name: str, one_rank: EngineProcess, config: MingConfig
) -> None:
    case = load(name)
    for reused in (False, True):
        output = await check_states(one_rank, case, config)
        # All that precedes the query tokens, and no query token, comes from the cache.
        assert not reused or output.cached_tokens == case["input_ids"].shape[1] + 1


@pytest.mark.parametrize("name", CASES)
async def test_states_on_two_ranks_without_the_cache(
    name: str, two_ranks: EngineProcess, config: MingConfig
) -> None:
    await check_states(two_ranks, load(name), config)


@pytest.mark.parametrize("ranks", ["one_rank", "two_ranks"])
async def test_image_and_text_requests_in_one_batch_do_not_change_each_other(
    ranks: str, request: pytest.FixtureRequest, config: MingConfig
) -> None:
    process: EngineProcess = request.getfixturevalue(ranks)
    texts = [load_case(name) for name in cases("thinker", "greedy_")]
    images = [load(name) for name in CASES]
    answers, _ = await asyncio.gather(
        asyncio.gather(*(generate(process, greedy_request(text, config)) for text in texts * 2)),
        asyncio.gather(*(check_states(process, image, config) for image in images * 2)),
    )
    for text, outputs in zip(texts * 2, answers, strict=True):
        ids = [token for output in outputs for token in output.token_ids]
        assert ids == text["generated_ids"].tolist()
        assert all(output.query_states is None for output in outputs)


async def test_query_tokens_from_the_cache_are_an_error(
    one_rank: EngineProcess, config: MingConfig
) -> None:
    case = load("t2i_plain")
    await generate(one_rank, image_request(case, config, unique=1))
    with pytest.raises(EngineFailed, match="query tokens"):
        await generate(one_rank, image_request(case, config, unique=1))


async def test_memory_that_is_gone_does_not_harm_the_engine(
    one_rank: EngineProcess, config: MingConfig
) -> None:
    case = load("t2i_plain")
    request = image_request(case, config)
    assert request.query is not None
    object.__setattr__(request.query.states, "path", "/proc/self/fd/99999")
    with pytest.raises(EngineFailed, match="query tokens"):
        await generate(one_rank, request)
    await check_states(one_rank, case, config)


async def test_a_layout_is_merged_with_later_outputs() -> None:
    layout = Layout((16, 192), "<f4")
    first = ThinkerOutput((1,), 5, 0, 1, query_states=layout)
    assert first.merge([ThinkerOutput((2,), 5, 0, 2, "stop")]).query_states == layout
