"""OpenAI's text completion chunks, made from the events of the pipeline."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.entrypoints.http.responses.chat_completion import build_usage
from sglang_omni.entrypoints.http.responses.json_template import JsonTemplate
from sglang_omni.entrypoints.http.responses.numbered_events import number_events
from sglang_omni.entrypoints.http.responses.sse import Data
from sglang_omni.entrypoints.http.responses.text_completion import (
    Choices,
    CompletionAnswer,
    CompletionChoice,
    Json,
)
from sglang_omni.pipeline.request import Event, Finished, TextDelta, Usage


async def stream_text_completion(
    choices: Choices, answer: CompletionAnswer
) -> AsyncGenerator[Data, None]:
    """Yield the `text_completion` chunks, each as soon as its event arrives."""
    writers = [TextChunkWriter(answer, index) for index in range(len(choices))]
    usages: dict[int, Usage] = {}
    async with aclosing(number_events(choices)) as events:
        async for index, event in events:
            for chunk in await writers[index].write(event):
                yield chunk
            if isinstance(event, Finished):
                usages[index] = event.usage
    if answer.include_usage:
        usage = answer.sum_usage([usages[index] for index in sorted(usages)])
        yield {**answer.build_header(), "choices": [], "usage": build_usage(usage)}


class TextChunkWriter:
    """Converter of the events of one streamed choice to chunks."""

    def __init__(self, answer: CompletionAnswer, index: int) -> None:
        self._answer, self._index = answer, index
        self._choice = CompletionChoice(answer, index)
        self._is_opened = False
        self._template = JsonTemplate(self._build_chunk)

    async def write(self, event: Event) -> list[Data]:
        """Return the chunks of `event`, possibly none."""
        opening = [] if self._is_opened else await self._build_opening(event)
        self._is_opened = True
        match event:
            case TextDelta(text, logprobs) if (text or logprobs) and self._answer.shows_answer:
                if self._answer.top_logprobs is None:
                    return [*opening, self._template.fill(text)]
                return [*opening, self._build_chunk(text, self._choice.build_logprobs(logprobs))]
            case Finished():
                reason = self._choice.choose_reason(event)
                return [*opening, self._build_chunk("", None, reason)]
        return opening

    async def _build_opening(self, event: Event) -> list[Data]:
        """Return the chunk before the answer, if there is something to say in it."""
        seed_scope = self._answer.build_seed_scope()
        text, logprobs = await self._choice.open(event)
        return [{**self._build_chunk(text, logprobs), **seed_scope}] if text or seed_scope else []

    def _build_chunk(
        self, text: str, logprobs: Json | None = None, finish_reason: str | None = None
    ) -> Json:
        choice = {
            "index": self._index,
            "text": text,
            "logprobs": logprobs,
            "finish_reason": finish_reason,
        }
        # With include_usage every chunk has the field; it is null in all but the last.
        usage = {"usage": None} if self._answer.include_usage else {}
        return {**self._answer.build_header(), "choices": [choice], **usage}
