"""A prompt that is given as tokens goes to the thinker as it is."""

from collections.abc import AsyncGenerator

import pytest

from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest, TokenLogprob
from sglang_omni.pipeline.preprocess import preprocess, tokenize
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    Finished,
    Message,
    Started,
    TextDelta,
    TextPart,
)
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.pipeline.segment import SegmentSettings
from sglang_omni.protocol.errors import ContextExceeded
from sglang_omni.protocol.sampling import SamplingParams
from tests.pipeline.engines import SPEECH, TEXT_ONLY, NoEngine, ScriptedEngine, admit_all
from tests.testing.family import CHAT, Tokens

CONTEXT = 512
SCORES = (TokenLogprob(1, -0.5), TokenLogprob(2, -1.0))


def raw(ids: tuple[int, ...], **sampling: int | bool) -> ChatRequest:
    return ChatRequest("raw", (), SamplingParams(**sampling), prompt_ids=ids)  # type: ignore[arg-type]


async def test_the_thinker_gets_the_tokens_and_its_scores_come_first(tokenizer: Tokens) -> None:
    (letter, *_) = tokenizer.encode_text("a")

    async def script(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        yield ThinkerOutput((letter,), 3, 0, 1, prompt_logprobs=SCORES)
        yield ThinkerOutput((letter,), 3, 0, 2, "length")

    thinker = ScriptedEngine(script)
    pipeline = Pipeline(
        TEXT_ONLY, admit_all(thinker, NoEngine()), CHAT, CONTEXT, SegmentSettings(), **SPEECH
    )
    request = raw((5, 6, 7), max_tokens=2, top_logprobs=0, prompt_logprobs=True)
    events: list[Event] = [event async for event in pipeline.respond(request)]
    (asked,) = thinker.requests
    assert (asked.input_ids, asked.features) == ((5, 6, 7), ())
    assert asked.sampling.prompt_logprobs
    first, *texts, last = events
    assert first == Started(SCORES)
    assert "".join(event.text for event in texts if isinstance(event, TextDelta)) == "aa"
    assert isinstance(last, Finished)
    assert last.usage.prompt_tokens == 3


def test_a_prompt_that_fills_the_context_is_refused() -> None:
    assert len(preprocess(raw((1,) * (CONTEXT - 1)), (), CHAT, CONTEXT).ids) == CONTEXT - 1
    with pytest.raises(ContextExceeded, match="shorten the prompt") as refused:
        preprocess(raw((1,) * CONTEXT), (), CHAT, CONTEXT)
    assert refused.value.param == "prompt"


def test_a_chat_is_tokenized_as_it_is_answered() -> None:
    request = ChatRequest("chat", (Message("user", (TextPart("Hello."),)),), SamplingParams())
    ids = preprocess(request, (), CHAT, CONTEXT).ids
    assert tokenize(request, (), CHAT).ids == ids
    # The same tokens are the same prompt, and each is one of the vocabulary.
    assert preprocess(raw(ids), (), CHAT, CONTEXT).ids == ids
    assert max(ids) < CHAT.vocabulary_size


def test_outputs_are_merged_with_the_scores_of_the_first() -> None:
    first = ThinkerOutput((1,), 3, 0, 1, prompt_logprobs=SCORES)
    merged = first.merge([ThinkerOutput((2,), 3, 0, 2, "stop")])
    assert (merged.token_ids, merged.prompt_logprobs) == ((1, 2), SCORES)
