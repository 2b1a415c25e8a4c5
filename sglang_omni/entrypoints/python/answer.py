"""The answer of a chat."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCalled,
    UnspokenText,
    Usage,
)
from sglang_omni.protocol.tools import build_tool_call


@dataclass(frozen=True, eq=False)
class ChatAnswer:
    """The complete answer of a chat.

    Attributes:
        text: The text.
        reasoning: What the model reasoned before it answered; empty if it did not.
        tool_calls: Calls of functions, as OpenAI's dictionaries.
        finish_reason: "stop", "length" or "tool_calls".
        usage: Numbers of tokens.
        audio: The speech, float32 [samples] in [-1, 1]; None for a text-only answer.
        sample_rate: The rate of the speech in Hz.
        invalid_tool_calls: The number of incomplete or malformed calls, which are left out.
        unspoken: Words of the text that the speech leaves out: the model does not speak them.
    """

    text: str
    reasoning: str
    tool_calls: tuple[dict[str, Any], ...]
    finish_reason: str
    usage: Usage
    audio: np.ndarray | None
    sample_rate: int
    invalid_tool_calls: int = 0
    unspoken: tuple[str, ...] = ()

    @property
    def message(self) -> dict[str, Any]:
        """Return the answer as a message, to append to the messages of the next chat."""
        calls = {"tool_calls": list(self.tool_calls)} if self.tool_calls else {}
        return {"role": "assistant", "content": self.text, **calls}


@dataclass
class AnswerBuilder:
    """Collects the events of one answer."""

    sample_rate: int
    has_audio: bool
    _texts: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _calls: list[dict[str, Any]] = field(default_factory=list)
    _chunks: list[np.ndarray] = field(default_factory=list)
    _unspoken: list[str] = field(default_factory=list)

    def add(self, event: Event) -> ChatAnswer | None:
        """Take the next event. Return the answer if it is the last one."""
        match event:
            case TextDelta(text):
                self._texts.append(text)
            case ReasoningDelta(text):
                self._reasoning.append(text)
            case ToolCalled(call):
                self._calls.append(build_tool_call(call))
            case UnspokenText(words):
                self._unspoken.extend(words)
            case AudioDelta(pcm):
                self._chunks.append(pcm)
            case Finished():
                return self._build(event)
        return None

    def _build(self, finished: Finished) -> ChatAnswer:
        silence = np.zeros(0, np.float32)
        return ChatAnswer(
            text="".join(self._texts),
            reasoning="".join(self._reasoning),
            tool_calls=tuple(self._calls),
            finish_reason=finished.choose_reason(bool(self._calls)),
            usage=finished.usage,
            audio=np.concatenate([silence, *self._chunks]) if self.has_audio else None,
            sample_rate=self.sample_rate,
            invalid_tool_calls=finished.invalid_calls,
            unspoken=tuple(self._unspoken),
        )
