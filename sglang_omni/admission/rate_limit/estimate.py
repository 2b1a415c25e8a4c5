"""How many tokens a request is expected to use, and how many it has used."""

import math

from sglang_omni.admission.controller import estimate_prompt_tokens
from sglang_omni.pipeline.request import (
    AudioDelta,
    ChatRequest,
    Event,
    Finished,
    ReasoningDelta,
    SpeechRequest,
    Started,
    TextDelta,
    Usage,
)

# 16 characters a second are a quick voice.
BYTES_PER_AUDIO_TOKEN = 5


def total_tokens(usage: Usage) -> int:
    """Return `usage.total_tokens` of an answer, as its client sees it."""
    return usage.prompt_tokens + usage.completion_tokens + usage.audio_tokens


def estimate_chat_tokens(request: ChatRequest) -> int:
    """Return the tokens to reserve for a chat: its prompt, and all that it may answer."""
    return estimate_prompt_tokens(request) + request.sampling.max_tokens


def estimate_speech_tokens(request: SpeechRequest, frame_s: float) -> int:
    """Return the tokens to reserve for a reading: about as much speech as its text takes.

    A token of speech lasts `frame_s` seconds.
    """
    spoken = math.ceil(len(request.text.encode(errors="surrogatepass")) / BYTES_PER_AUDIO_TOKEN)
    if request.max_seconds is None:
        return spoken
    return min(spoken, math.ceil(request.max_seconds / frame_s))


class TokenCount:
    """Counts what one request uses, event by event; written by that request's task alone."""

    def __init__(self, prompt_tokens: int, sample_rate: int, frame_s: float) -> None:
        """`prompt_tokens` is an estimate. Speech has `sample_rate` Hz and a token each `frame_s`
        seconds."""
        self._prompt_tokens, self._sample_rate = prompt_tokens, sample_rate
        self._frame_s = frame_s
        self._has_begun = False
        self._usage: Usage | None = None
        self._text_events = self._samples = 0

    def note(self, event: Event) -> None:
        """Take an event of the answer in."""
        self._has_begun = True
        match event:
            case Finished(usage=usage):
                self._usage = usage
            case AudioDelta(pcm=pcm):
                self._samples += pcm.size
            case TextDelta() | ReasoningDelta():
                self._text_events += 1
            case Started():
                pass

    @property
    def used(self) -> int:
        """Tokens used: what the engines counted, or for an answer that was broken off an estimate;
        none where it never began."""
        if self._usage is not None:
            return total_tokens(self._usage)
        if not self._has_begun:
            return 0
        seconds = self._samples / self._sample_rate if self._samples else 0.0
        spoken = math.ceil(seconds / self._frame_s)
        return self._prompt_tokens + self._text_events + spoken
