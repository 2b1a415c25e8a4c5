"""Stage 6: turn the thinker's tokens into the parts of an answer, and parts into events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.engines.thinker.contract import ThinkerOutput
from sglang_omni.models.chat import Reasoning
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.answer_parser import AnswerParser, Part
from sglang_omni.pipeline.decode import TextDecoder
from sglang_omni.pipeline.request import (
    Event,
    ReasoningDelta,
    Started,
    TextDelta,
    ToolCalled,
)
from sglang_omni.pipeline.speech import RequestUsage
from sglang_omni.protocol.tools import InvalidToolCall, ToolCall, ToolCallDelta, ToolCallStart


async def stream_parts(
    outputs: AsyncGenerator[ThinkerOutput, None],
    decoder: TextDecoder,
    parser: AnswerParser,
    usage: RequestUsage,
) -> AsyncGenerator[Part | Started, None]:
    """Yield `Started` with the first tokens, which may not be visible, and then the parts.

    Nothing can follow a stop string or the last allowed call, so the thinker is aborted then.
    """
    async with aclosing(outputs):
        output = await anext(outputs, None)
        yield Started() if output is None else Started(output.prompt_logprobs)
        with stage("decode") as span:
            while output is not None:
                if output.logprobs:
                    usage.add_logprobs(output.logprobs)
                if text := decoder.push(output.token_ids):
                    span.record_output()
                    for part in parser.push(text):
                        yield part
                if decoder.stopped or parser.has_ended:
                    usage.reason = "stop" if decoder.stopped else usage.reason
                    break
                output = await anext(outputs, None)
    for part in (*parser.push(decoder.finish()), *parser.finish()):
        yield part


async def select_text(answer: AsyncGenerator[Part | Started, None]) -> AsyncGenerator[str, None]:
    """Yield the text of an answer, which can be spoken. Closing this generator closes `answer`."""
    async with aclosing(answer):
        async for part in answer:
            if isinstance(part, str):
                yield part


async def to_events(
    answer: AsyncGenerator[Part | Started, None], usage: RequestUsage
) -> AsyncGenerator[Event, None]:
    """Turn parts into events.

    This generator drives the answer, so log probabilities that were added since the last part
    belong to the current one.
    """
    async with aclosing(answer):
        async for part in answer:
            logprobs = usage.take_logprobs()
            match part:
                case str():
                    yield TextDelta(part, logprobs)
                case Started() | ToolCallStart() | ToolCallDelta():
                    yield part
                case Reasoning(text):
                    usage.mark_reasoning()
                    yield ReasoningDelta(text)
                case ToolCall():
                    yield ToolCalled(part)
                case InvalidToolCall():
                    usage.invalid_calls += 1
    if rest := usage.take_logprobs():
        yield TextDelta("", rest)
