"""Parts that a family can use as they are where it has nothing of its own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sglang_omni.media.limits import MediaRules, PixelBudget, VideoRules
from sglang_omni.models.capabilities import SpeechTask
from sglang_omni.models.media_format import MediaFormat
from sglang_omni.models.pending_call import CALL_TOKENS
from sglang_omni.models.reasoning import THINK_TAGS, ThinkTagParser
from sglang_omni.models.speech_text import (
    DEFAULT_READING,
    ReadingOptions,
    SpeechStyle,
    TextFrontEnd,
)
from sglang_omni.models.written_words import WrittenText
from sglang_omni.normalization.cuts import find_closed
from sglang_omni.normalization.lexicon import apply_lexicon
from sglang_omni.normalization.preview import Preview
from sglang_omni.protocol.tools import CallPart, Tool, ToolChoice

_RULES = MediaRules(
    image=PixelBudget(factor=32, min_pixels=32 * 32, max_pixels=1 << 20),
    video=VideoRules(fps=2.0, frames=16, factor=32, min_pixels=32 * 32, total_pixels=1 << 20),
    sample_rate=16_000,
)
PLAIN_MEDIA_FORMAT = MediaFormat(
    _RULES,
    patch_grid=lambda shape: (-(-shape[0] // 2), shape[1] // 32, shape[2] // 32),
    image_tokens=lambda grid: grid[1] * grid[2],
    audio_tokens=lambda samples: max(1, samples // 1_600),
)
"""A token for 32 x 32 pixels of an image, or of two frames of a video, and for 0.1 s of audio."""

# No blank follows a Chinese mark. The period of a number is followed by a digit.
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n")


@dataclass(frozen=True)
class PlainFrontEnd:
    """A `TextFrontEnd` that reads text as it is, by sentences, but for the words of a lexicon."""

    lexicon: Mapping[str, str]
    written: WrittenText | None = None

    def safe_cut(self, text: str, end: int) -> int:
        """Return the end of the last word or sentence at or before `end`."""
        return find_closed(text, end)

    def split_fragments(self, text: str) -> Iterator[str]:
        """Yield the sentences and lines of `text` that have a letter or a digit."""
        for sentence in _SENTENCE_END.split(text):
            words = apply_lexicon(sentence, self.lexicon).strip()
            if any(map(str.isalnum, words)):
                if self.written is not None:
                    self.written.add(sentence)
                yield words


class PlainSpeechText:
    """A `SpeechText` for a model that reads text as it is, by sentences."""

    def open_front_end(
        self, options: ReadingOptions = DEFAULT_READING, written: WrittenText | None = None
    ) -> TextFrontEnd:
        """Return a front end that normalises nothing."""
        return PlainFrontEnd(options.lexicon, written)

    def preview(self, text: str, options: ReadingOptions = DEFAULT_READING) -> Preview:
        """Return the sentences."""
        return Preview(" ".join(self.open_front_end(options).split_fragments(text)))

    def warm_up(self) -> None:
        """Do nothing: there is nothing to load."""

    def style(
        self, task: SpeechTask, instructions: Mapping[str, str | None] | None = None
    ) -> SpeechStyle:
        """Return the default style; such a model follows no instructions."""
        return SpeechStyle()

    def description(self, task: SpeechTask, text: str) -> str:
        """Return the text as it is."""
        return text

    def max_description_s(self, text: str) -> float:
        """Return a minute."""
        return 60.0


class PlainToolParser:
    """A `ToolParser` for a model that calls no functions."""

    def push(self, delta: str) -> list[CallPart]:
        """Return the text."""
        return [delta] if delta else []

    def finish(self) -> list[CallPart]:
        """Return nothing: no text is held back."""
        return []


class PlainTrimmer:
    """An `OutputTrimmer` that removes nothing."""

    def push(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Return the samples."""
        return pcm


class PlainChat:
    """The part of a `ChatFormat` for a model that calls no functions; a subclass has the rest."""

    default_system = "You are a helpful assistant."
    markup = (*THINK_TAGS, *CALL_TOKENS)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the UTF-8 bytes of one token, empty for a special token."""
        raise NotImplementedError

    @property
    def tool_tokens(self) -> "PlainChat":
        """Return this object: there are no marks of calls."""
        return self

    def tool_parser(self, stream_arguments: bool = False) -> PlainToolParser:
        """Return a parser that finds no calls."""
        return PlainToolParser()

    def reasoning_parser(self) -> ThinkTagParser:
        """Return a parser of `<think>...</think>`."""
        return ThinkTagParser()

    def answer_grammar(
        self, tools: Sequence[Tool], choice: ToolChoice, schema: str | None, thinking: bool
    ) -> str | None:
        """Return None: a JSON schema alone describes an answer."""
        return None
