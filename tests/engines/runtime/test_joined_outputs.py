"""Tokens that wait for their client reach it together, and all of them do."""

import asyncio
from contextlib import aclosing

import pytest

from benchmarks.synthetic.thinker import ThinkerPace
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.thinker.contract import (
    FinishReason,
    ThinkerOutput,
    ThinkerRequest,
    TokenLogprob,
)
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.protocol.sampling import SamplingParams
from tests.engines.runtime.processes import ROOT

TOKENS = 200
ANSWER = tuple(range(7))
WHOLE = [ANSWER[place % len(ANSWER)] for place in range(TOKENS)]
REQUEST = ThinkerRequest((1, 2), SamplingParams(max_tokens=TOKENS))


def thinker(step_ms: float) -> EngineProcess:
    factory = "benchmarks.synthetic.thinker:open_worker"
    pace = ThinkerPace(step_ms=step_ms, answer=ANSWER)
    return EngineProcess(ProcessSpec("thinker", factory, pace, {"PYTHONPATH": str(ROOT)}))


async def read(engine: EngineProcess, pause_s: float) -> list[ThinkerOutput]:
    """The outputs of a request, to a client that rests after each."""
    outputs = []
    async with aclosing(engine.submit(REQUEST)) as stream:
        async for output in stream:
            outputs.append(output)
            await asyncio.sleep(pause_s)
    return outputs


async def test_a_client_that_is_behind_gets_what_waits_as_one_output_and_misses_none() -> None:
    engine = thinker(step_ms=1)
    await engine.start()
    try:
        outputs = await read(engine, pause_s=0.04)
    finally:
        await engine.stop()
    assert [token for output in outputs for token in output.token_ids] == WHOLE
    assert len(outputs) < TOKENS / 4
    counts = [output.completion_tokens for output in outputs]
    assert counts == sorted(counts)
    assert counts[-1] == TOKENS
    assert [output.last for output in outputs] == [False] * (len(outputs) - 1) + [True]


async def test_a_token_that_is_alone_does_not_wait_for_the_next() -> None:
    engine = thinker(step_ms=10_000)
    await engine.start()
    try:
        # The first step ends at once, the next in ten seconds.
        async with asyncio.timeout(8), aclosing(engine.submit(REQUEST)) as stream:
            assert (await anext(stream)).token_ids == (0,)
    finally:
        await engine.stop(deadline_s=0.1)


async def test_a_dead_engine_is_an_error_after_what_it_had_given() -> None:
    engine = thinker(step_ms=1)
    await engine.start()
    try:
        async with aclosing(engine.submit(REQUEST)) as stream:
            first = await anext(stream)
            await asyncio.sleep(0.05)
            connection = engine._connection
            assert connection is not None
            connection._process.kill()
            await connection.lost.wait()
            rest = await anext(stream)
            with pytest.raises(EngineFailed):
                await anext(stream)
    finally:
        await engine.stop()
    given = [*first.token_ids, *rest.token_ids]
    assert len(given) > 2
    assert given == WHOLE[: len(given)]


def test_joined_outputs_are_what_one_output_would_have_been() -> None:
    def output(number: int) -> ThinkerOutput:
        logprobs = (TokenLogprob(number, -0.5 * number),)
        reason: FinishReason | None = "stop" if number == 3 else None
        return ThinkerOutput((number,), 9, 4, number, reason, logprobs)

    first, *later = map(output, (1, 2, 3))
    whole = first.merge(later)
    assert whole.token_ids == (1, 2, 3)
    assert [one.token_id for one in whole.logprobs] == [1, 2, 3]
    assert (whole.prompt_tokens, whole.cached_tokens, whole.completion_tokens) == (9, 4, 3)
    assert whole.last
    assert whole.finish_reason == "stop"
