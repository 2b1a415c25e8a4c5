"""What a request may ask of SGLang's sampling.

These are schemas, grammars, biases, penalties and log probabilities.
"""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.models.answer_grammar import build_answer_grammar
from sglang_omni.models.ming.prompt.format import MingChatFormat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.tool_calls import ToolCallParser
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from sglang_omni.protocol.sampling import Grammar, SamplingParams
from sglang_omni.protocol.tools import Tool, ToolCall, ToolChoice
from tests.testing.golden import TINY

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOKENIZER = ThinkerTokenizer(TINY)
PROMPT = tuple(TOKENIZER.encode_text("How many apples are there?"))
PLAIN = SamplingParams(max_tokens=12)


async def generate(process: EngineProcess, sampling: SamplingParams) -> list[ThinkerOutput]:
    return [output async for output in process.submit(ThinkerRequest(PROMPT, sampling))]


def ids(outputs: list[ThinkerOutput]) -> list[int]:
    return [token for output in outputs for token in output.token_ids]


SCHEMA = {
    "type": "object",
    "properties": {"count": {"enum": [1, 2, 3]}, "kind": {"enum": ["apple", "pear"]}},
    "required": ["count", "kind"],
    "additionalProperties": False,
}


async def test_an_answer_keeps_to_its_schema(one_rank: EngineProcess) -> None:
    assert one_rank.health.info.supports_json_schema
    asked = SamplingParams(max_tokens=200, temperature=1.0, json_schema=json.dumps(SCHEMA))
    for outputs in await asyncio.gather(*(generate(one_rank, asked) for _ in range(3))):
        answer = json.loads(TOKENIZER.decode(ids(outputs)))
        assert answer["count"] in (1, 2, 3)
        assert answer["kind"] in ("apple", "pear")
        assert outputs[-1].finish_reason == "stop"


async def test_a_schema_that_is_none_is_refused_by_its_field(one_rank: EngineProcess) -> None:
    with pytest.raises(InvalidRequest) as error:
        await generate(one_rank, replace(PLAIN, json_schema='{"type": "no such type"}'))
    assert error.value.param == "response_format"


async def test_each_token_has_its_log_probability_and_the_likeliest(
    one_rank: EngineProcess,
) -> None:
    outputs = await generate(one_rank, replace(PLAIN, top_logprobs=3))
    tokens = [token for output in outputs for token in output.logprobs]
    assert [token.token_id for token in tokens] == ids(outputs)
    for token in tokens:
        assert len(token.top) == 3
        likeliest, logprob = token.top[0]
        assert likeliest == token.token_id
        assert logprob == pytest.approx(token.logprob, abs=1e-5)
        assert sum(math.exp(value) for _, value in token.top) <= 1 + 1e-4
    assert all(not output.logprobs for output in await generate(one_rank, PLAIN))


async def test_a_bias_forbids_and_forces_tokens(one_rank: EngineProcess) -> None:
    usual = ids(await generate(one_rank, PLAIN))
    without = replace(PLAIN, logit_bias=((usual[0], -100.0),))
    assert usual[0] not in ids(await generate(one_rank, without))
    forced = replace(PLAIN, logit_bias=((usual[3], 100.0),))
    assert set(ids(await generate(one_rank, forced))) == {usual[3]}


async def test_a_bias_of_no_token_is_refused_by_its_field(one_rank: EngineProcess) -> None:
    with pytest.raises(InvalidRequest) as error:
        await generate(one_rank, replace(PLAIN, logit_bias=((999_999_999, 1.0),)))
    assert error.value.param == "logit_bias"


async def test_penalties_end_a_repetition(one_rank: EngineProcess) -> None:
    once = SamplingParams(max_tokens=24, logit_bias=((PROMPT[0], 8.0), (PROMPT[1], 7.5)))
    again = ids(await generate(one_rank, once))
    for asked in (replace(once, frequency_penalty=2.0), replace(once, presence_penalty=2.0)):
        varied = ids(await generate(one_rank, asked))
        assert varied != again


async def test_an_answer_keeps_to_a_grammar_on_one_rank_and_on_two(
    one_rank: EngineProcess, two_ranks: EngineProcess
) -> None:
    assert one_rank.health.info.supports_grammar
    look = Tool("look", "", SCHEMA)
    lark = build_answer_grammar([look], ToolChoice(forced=True, parallel=False), None, False)
    assert lark is not None
    asked = SamplingParams(max_tokens=200, temperature=1.0, grammar=Grammar(lark, "tools"))
    ranks = (one_rank, two_ranks, two_ranks)
    for outputs in await asyncio.gather(*(generate(process, asked) for process in ranks)):
        reader, spelled = ToolCallParser(), MingChatFormat(TINY).tool_tokens
        text = b"".join(map(spelled.token_bytes, ids(outputs))).decode()
        (call,) = [*reader.push(text), *reader.finish()]
        assert isinstance(call, ToolCall)
        assert call.name == "look"
        assert json.loads(call.arguments).keys() == {"count", "kind"}
        assert outputs[-1].finish_reason == "stop"


async def test_a_grammar_that_is_none_is_refused_by_its_field(one_rank: EngineProcess) -> None:
    broken = Grammar("%llguidance {}\nstart: nothing", "tools")
    with pytest.raises(InvalidRequest) as error:
        await generate(one_rank, replace(PLAIN, grammar=broken))
    assert error.value.param == "tools"


async def test_a_grammar_that_fails_ends_its_own_request_only(
    one_rank: EngineProcess, two_ranks: EngineProcess
) -> None:
    """Nobody looked at these schemas before: no token may begin an answer of theirs."""
    nothing = replace(PLAIN, json_schema='{"$ref": "#"}')
    for process in (one_rank, two_ranks):
        pid, beside = process.pid, asyncio.create_task(generate(process, PLAIN))
        for _ in range(2):  # The second finds the compiled grammar kept.
            with pytest.raises(EngineFailed):
                await generate(process, nothing)
        assert (await beside)[-1].last
        assert ids(await generate(process, PLAIN)) == ids(await beside)
        assert process.pid == pid


async def test_a_number_ends_though_the_model_would_write_digits_for_ever(
    one_rank: EngineProcess,
) -> None:
    (five,) = TOKENIZER.encode_text("5")
    endless = SamplingParams(
        max_tokens=400, logit_bias=((five, 100.0),), json_schema='{"type": "number"}'
    )
    outputs = await generate(one_rank, endless)
    assert outputs[-1].finish_reason == "stop"
    assert json.loads(TOKENIZER.decode(ids(outputs))) > 0
