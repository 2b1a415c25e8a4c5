"""The running SGLang engine gives the released model's tokens, however it is run."""

import asyncio
import gc
import time
import weakref
from pathlib import Path

import psutil
import pytest

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.transport import HEARTBEAT_INTERVAL_S
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams
from tests.models.ming.thinker.features import greedy_request
from tests.testing.golden import cases, load_case
from tests.testing.machine import PATIENCE

GREEDY = cases("thinker", "greedy_")

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def generate(process: EngineProcess, request: ThinkerRequest) -> list[ThinkerOutput]:
    return [output async for output in process.submit(request)]


def ids(outputs: list[ThinkerOutput]) -> list[int]:
    return [token for output in outputs for token in output.token_ids]


@pytest.mark.parametrize("name", GREEDY)
async def test_greedy_tokens_agree_with_and_without_the_radix_cache(
    name: str, one_rank: EngineProcess, config: MingConfig
) -> None:
    case = load_case(name)
    request = greedy_request(case, config)
    for reused in (False, True):
        outputs = await generate(one_rank, request)
        assert ids(outputs) == case["generated_ids"].tolist()
        # The second run finds all of its prompt but the last token in the cache.
        assert not reused or outputs[-1].cached_tokens == len(request.input_ids) - 1


@pytest.mark.parametrize("name", GREEDY)
async def test_two_ranks_without_the_cache_give_the_same_tokens(
    name: str, two_ranks: EngineProcess, config: MingConfig
) -> None:
    case = load_case(name)
    for _ in range(2):
        outputs = await generate(two_ranks, greedy_request(case, config))
        assert ids(outputs) == case["generated_ids"].tolist()
        assert outputs[-1].cached_tokens == 0


@pytest.mark.extended
@pytest.mark.parametrize("name", GREEDY)
async def test_two_ranks_that_share_the_experts_give_the_same_tokens(
    name: str, two_expert_ranks: EngineProcess, config: MingConfig
) -> None:
    case = load_case(name)
    outputs = await generate(two_expert_ranks, greedy_request(case, config))
    assert ids(outputs) == case["generated_ids"].tolist()


async def test_requests_in_one_batch_do_not_change_each_other(
    one_rank: EngineProcess, config: MingConfig
) -> None:
    golden = [load_case(name) for name in GREEDY]
    answers = await asyncio.gather(
        *(generate(one_rank, greedy_request(case, config)) for case in golden * 2)
    )
    for case, outputs in zip(golden * 2, answers, strict=True):
        assert ids(outputs) == case["generated_ids"].tolist()


async def test_tokens_stream_and_the_last_output_says_why_it_ended(
    one_rank: EngineProcess, config: MingConfig
) -> None:
    outputs = await generate(one_rank, greedy_request(load_case(GREEDY[0]), config))
    assert len(outputs) > 4
    assert [output.last for output in outputs] == [False] * (len(outputs) - 1) + [True]
    assert outputs[-1].finish_reason == "length"
    assert outputs[-1].completion_tokens == 16


@pytest.mark.alone
async def test_closing_a_stream_frees_its_tokens_within_a_second(one_rank: EngineProcess) -> None:
    # For the report of what an earlier test gave up. There is none before an engine's first.
    await asyncio.sleep(3 * HEARTBEAT_INTERVAL_S)
    before = one_rank.health.counters.get("aborted", 0)
    stream = one_rank.submit(ThinkerRequest((5, 6, 7), SamplingParams(max_tokens=3000)))
    for _ in range(3):
        await anext(stream)
    await stream.aclose()
    deadline = time.monotonic() + 1.0 * PATIENCE
    while state(one_rank) != (0, 0, 0, before + 1) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert state(one_rank) == (0, 0, 0, before + 1)


def state(process: EngineProcess) -> tuple[float | None, ...]:
    names = ("running", "waiting", "kv_tokens_used", "aborted")
    return tuple(process.health.counters.get(name) for name in names)


async def test_a_picture_is_there_for_schedulers_that_look_after_its_request_has_gone(
    two_ranks: EngineProcess, config: MingConfig
) -> None:
    case = next(case for case in map(load_case, GREEDY) if "image_embeds" in case.tensors)
    long = ThinkerRequest((5,) * 3000, SamplingParams(max_tokens=1))
    for wait in (0.02, 0.05):
        # The schedulers are at this when the picture is sent.
        reading = asyncio.create_task(generate(two_ranks, long))
        await asyncio.sleep(wait)
        rows = await leave_after(0.01, two_ranks, greedy_request(case, config))
        assert rows() is None
        assert not reading.done()
        await reading
    outputs = await generate(two_ranks, greedy_request(case, config))
    assert ids(outputs) == case["generated_ids"].tolist()


async def leave_after(
    seconds: float, process: EngineProcess, request: ThinkerRequest
) -> "weakref.ref[SharedArray]":
    """Give a request up, and what lies in memory for it."""
    rows = weakref.ref(request.features[0].rows)
    leaving = asyncio.create_task(generate(process, request))
    del request
    await asyncio.sleep(seconds)
    leaving.cancel()
    await asyncio.wait({leaving})
    del leaving
    gc.collect()
    return rows


async def test_the_processes_of_sglang_share_what_the_engine_has_imported(
    two_ranks: EngineProcess,
) -> None:
    assert two_ranks.pid is not None
    children = psutil.Process(two_ranks.pid).children()
    memory = {child.name(): anonymous_kb(child.pid) for child in children}
    ranks = [name for name in memory if name.startswith("sglang::sched")]
    assert len(ranks) == 2, memory
    for rank in ranks:
        proportional, whole = memory[rank]
        # A process that has imported SGLang itself shares none: the two are the same.
        assert proportional < 0.7 * whole, memory


def anonymous_kb(pid: int) -> tuple[int, int]:
    """Return the anonymous memory of a process: its share of shared pages alone, and as a whole."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    fields = dict(line.split(":") for line in lines)
    proportional, whole = (int(fields[name].split()[0]) for name in ("Pss_Anon", "Anonymous"))
    return proportional, whole


async def test_a_prompt_longer_than_the_context_names_the_field(one_rank: EngineProcess) -> None:
    request = ThinkerRequest((5,) * 40_000, SamplingParams(max_tokens=4))
    with pytest.raises(InvalidRequest) as raised:
        await generate(one_rank, request)
    assert raised.value.param == "messages"
