"""The log probabilities of a prompt's tokens are those of the same tokens in an answer."""

import asyncio
from dataclasses import replace

import pytest

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest, TokenLogprob
from sglang_omni.engines.thinker.launch import LOGITS_CHUNK_TOKENS
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.protocol.sampling import SamplingParams
from tests.testing.golden import TINY

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROMPT = ThinkerTokenizer(TINY).encode_prompt("How many apples are there?")
ANSWER = SamplingParams(max_tokens=12, top_logprobs=2)
SCORE = SamplingParams(max_tokens=1, top_logprobs=2, prompt_logprobs=True)


async def generate(
    process: EngineProcess, prompt: tuple[int, ...], sampling: SamplingParams
) -> ThinkerOutput:
    first, *later = [out async for out in process.submit(ThinkerRequest(prompt, sampling))]
    assert all(output.prompt_logprobs == () for output in later)
    return first.merge(later)


def close(found: tuple[TokenLogprob, ...], expected: tuple[TokenLogprob, ...]) -> bool:
    """Whether two runs of tokens are the same, with nearly the same probabilities."""
    return [one.token_id for one in found] == [one.token_id for one in expected] and all(
        abs(one.logprob - other.logprob) < 1e-3
        and [value for _, value in one.top] == pytest.approx([v for _, v in other.top], abs=1e-3)
        for one, other in zip(found, expected, strict=True)
    )


async def test_they_are_those_of_the_answer(one_rank: EngineProcess) -> None:
    answer = await generate(one_rank, PROMPT, ANSWER)
    assert answer.prompt_logprobs == ()
    whole = (*PROMPT, *answer.token_ids)
    for _ in range(2):  # The second time the whole prompt is in the radix cache.
        scored = await generate(one_rank, whole, SCORE)
        assert [token.token_id for token in scored.prompt_logprobs] == [*whole[1:]]
        assert close(scored.prompt_logprobs[-len(answer.token_ids) :], answer.logprobs)
        assert len(scored.logprobs) == 1


async def test_they_come_once_and_without_likeliest_tokens_if_none_are_asked_for(
    one_rank: EngineProcess,
) -> None:
    scored = await generate(one_rank, PROMPT, replace(SCORE, max_tokens=4, top_logprobs=0))
    assert [token.token_id for token in scored.prompt_logprobs] == [*PROMPT[1:]]
    assert {token.top for token in scored.prompt_logprobs} == {()}
    assert len(scored.logprobs) == 4


async def test_a_prompt_of_one_token_has_none(one_rank: EngineProcess) -> None:
    assert (await generate(one_rank, PROMPT[:1], SCORE)).prompt_logprobs == ()


async def test_pieces_of_logits_do_not_change_them(
    one_rank: EngineProcess, two_ranks: EngineProcess
) -> None:
    prompt = (PROMPT * LOGITS_CHUNK_TOKENS)[: 2 * LOGITS_CHUNK_TOKENS + 100]
    # The first engine prefills few tokens at a time, so it never cuts logits.
    expected = await generate(one_rank, prompt, SCORE)
    other = (await generate(one_rank, PROMPT, SCORE)).prompt_logprobs
    scored, *others = await asyncio.gather(
        generate(two_ranks, prompt, SCORE),
        *(generate(two_ranks, PROMPT, SCORE) for _ in range(3)),
    )
    assert close(scored.prompt_logprobs, expected.prompt_logprobs)
    assert all(close(one.prompt_logprobs, other) for one in others)
