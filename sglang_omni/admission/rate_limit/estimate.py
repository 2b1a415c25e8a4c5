"""Estimate the tokens that a request will use, and count those that it has used."""

import math

from sglang_omni.admission.controller import estimate_prompt_tokens
from sglang_omni.pipeline.image_request import ImageRequest
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

# An image counts as a token for each 16 x 16 pixels.
PIXELS_PER_IMAGE_TOKEN = 256


def total_tokens(usage: Usage) -> int:
    """Return the `usage.total_tokens` that the client sees."""
    generated = usage.completion_tokens + usage.audio_tokens + usage.image_tokens
    return usage.prompt_tokens + generated


def estimate_chat_tokens(request: ChatRequest) -> int:
    """Return the tokens to reserve for a chat: its estimated prompt and its `max_tokens`."""
    return estimate_prompt_tokens(request) + request.sampling.max_tokens


def estimate_speech_tokens(request: SpeechRequest, frame_s: float) -> int:
    """Return the tokens to reserve for a reading: about as much speech as its text takes.

    A token of speech lasts `frame_s` seconds.
    """
    num_bytes = sum(len(turn.text.encode(errors="surrogatepass")) for turn in request.turns)
    spoken = math.ceil(num_bytes / BYTES_PER_AUDIO_TOKEN)
    if request.max_seconds is None:
        return spoken
    return min(spoken, math.ceil(request.max_seconds / frame_s))


def estimate_image_tokens(request: ImageRequest) -> int:
    """Return the tokens to reserve for images: the estimated prompts, and squares of the size."""
    prompt_tokens = sum(map(estimate_prompt_tokens, request.to_chats(request.media).values()))
    return prompt_tokens + len(request.seeds) * request.resolution**2 // PIXELS_PER_IMAGE_TOKEN


class TokenCount:
    """Count the tokens of one request, event by event. Only that request's task writes it."""

    def __init__(self, prompt_tokens: int, sample_rate: int, frame_s: float) -> None:
        """Take an estimate of the prompt's tokens, the sample rate of speech in Hz, and `frame_s`.

        A token of speech lasts `frame_s` seconds.
        """
        self._prompt_tokens, self._sample_rate = prompt_tokens, sample_rate
        self._frame_s = frame_s
        self._has_started = False
        self._usage: Usage | None = None
        self._text_events = self._samples = 0

    def add(self, event: Event) -> None:
        """Count an event of the answer."""
        self._has_started = True
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
        """Return the tokens used.

        They are the engines' count, an estimate if the answer was aborted, and zero if it never
        started.
        """
        if self._usage is not None:
            return total_tokens(self._usage)
        if not self._has_started:
            return 0
        seconds = self._samples / self._sample_rate if self._samples else 0.0
        spoken = math.ceil(seconds / self._frame_s)
        return self._prompt_tokens + self._text_events + spoken
