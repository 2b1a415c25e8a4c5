"""OpenAI's text completion object, made from the events of the pipeline."""

import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.entrypoints.http.responses.chat_completion import build_usage, sum_usage
from sglang_omni.entrypoints.http.responses.text_logprobs import TextLogprobs, join_logprobs
from sglang_omni.entrypoints.requests.completions import PromptTokens
from sglang_omni.entrypoints.requests.token_text import TokenText
from sglang_omni.pipeline.async_streams import gather_or_cancel
from sglang_omni.pipeline.request import Event, Finished, Started, TextDelta, Usage
from sglang_omni.pipeline.work_threads import run_off_loop

Json = dict[str, Any]
Choices = Sequence[AsyncGenerator[Event, None]]
# About what one takes in JSON.
CHARACTERS_PER_LOGPROB = 32


@dataclass(frozen=True)
class CompletionAnswer:
    """The properties of a text completion that are known before its first event.

    Attributes:
        request_id: Id of the request.
        model: Served model name.
        prompts: The prompts, in order.
        choices_per_prompt: How many choices each prompt has, one after the other.
        echoes: Whether each choice begins with its prompt.
        shows_answer: Whether the choices have more than their prompts.
        top_logprobs: How many likeliest tokens are returned; None without log probabilities.
        token_text: Returns the text of a token.
        seed_applies_to: What a given `seed` fixes; None if the request has no seed.
        include_usage: Whether a streamed answer ends with its usage.
        created: Unix time of the answer in seconds.
    """

    request_id: str
    model: str
    prompts: Sequence[PromptTokens]
    choices_per_prompt: int
    echoes: bool
    shows_answer: bool
    top_logprobs: int | None
    token_text: TokenText
    seed_applies_to: tuple[str, ...] | None
    include_usage: bool
    created: int = field(default_factory=lambda: int(time.time()))

    def get_prompt(self, index: int) -> PromptTokens:
        """Return the prompt of a choice."""
        return self.prompts[index // self.choices_per_prompt]

    def build_header(self) -> Json:
        """Return the fields that are common to all objects of the answer."""
        return {
            "id": f"cmpl-{self.request_id}",
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
        }

    def build_seed_scope(self) -> Json:
        """Return the field that says what `seed` fixes, or no field without a seed."""
        return {} if self.seed_applies_to is None else {"seed_applies_to": [*self.seed_applies_to]}

    def sum_usage(self, usages: Sequence[Usage]) -> Usage:
        """Return the usage of all choices, in their order. Each prompt counts once."""
        count = self.choices_per_prompt
        of_prompts = [
            sum_usage(usages[first : first + count]) for first in range(0, len(usages), count)
        ]
        total = replace(
            sum_usage(of_prompts),
            prompt_tokens=sum(usage.prompt_tokens for usage in of_prompts),
            cached_tokens=sum(usage.cached_tokens for usage in of_prompts),
        )
        return total if self.shows_answer else replace(total, completion_tokens=0)


class CompletionChoice:
    """Converter of the events of one choice to text and log probabilities."""

    def __init__(self, answer: CompletionAnswer, index: int) -> None:
        self._answer, self._prompt = answer, answer.get_prompt(index)
        self._logprobs = (
            None
            if answer.top_logprobs is None
            else TextLogprobs(answer.token_text, answer.top_logprobs)
        )

    async def open(self, event: Event) -> tuple[str, Json | None]:
        """Return what stands before the answer's first text. `event` is the first one."""
        if not self._answer.echoes:
            return "", None
        if self._logprobs is None:
            return self._prompt.text, None
        tokens = event.prompt_logprobs if isinstance(event, Started) else ()
        size = CHARACTERS_PER_LOGPROB * len(tokens) * (1 + (self._answer.top_logprobs or 0))
        ids = self._prompt.ids
        return self._prompt.text, await run_off_loop(size, self._logprobs.build_prompt, ids, tokens)

    def build_logprobs(self, tokens: Iterable[TokenLogprob]) -> Json | None:
        """Return the log probabilities of new tokens, None if they were not requested."""
        return None if self._logprobs is None else self._logprobs.build(tokens)

    def choose_reason(self, finished: Finished) -> str:
        """Return why the choice ends. A prompt alone ends because of its limit, zero tokens."""
        return finished.reason if self._answer.shows_answer else "length"


async def build_text_completion(choices: Choices, answer: CompletionAnswer) -> Json:
    """Return the `text_completion` object. The last event of each choice must be `Finished`."""
    results = await gather_or_cancel(
        _build_choice(events, answer, index) for index, events in enumerate(choices)
    )
    usages = [usage for _, usage in results]
    return {
        **answer.build_header(),
        "choices": [choice for choice, _ in results],
        "usage": build_usage(answer.sum_usage(usages)),
        **answer.build_seed_scope(),
    }


async def _build_choice(
    events: AsyncGenerator[Event, None], answer: CompletionAnswer, index: int
) -> tuple[Json, Usage]:
    async with aclosing(events):
        received = [event async for event in events]
    finished, choice = received[-1], CompletionChoice(answer, index)
    assert isinstance(finished, Finished)
    text, logprobs = await choice.open(received[0])
    if answer.shows_answer:
        deltas = [event for event in received if isinstance(event, TextDelta)]
        text += "".join(delta.text for delta in deltas)
        tokens = [token for delta in deltas for token in delta.logprobs]
        of_answer = choice.build_logprobs(tokens)
        logprobs = join_logprobs(logprobs, of_answer) if logprobs and of_answer else of_answer
    reason = choice.choose_reason(finished)
    shown = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}
    return shown, finished.usage
