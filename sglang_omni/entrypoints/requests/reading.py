"""How a request wants its text read aloud: its own options over the server's."""

from collections.abc import Sequence
from dataclasses import replace

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.models.speech_text import ReadingOptions
from sglang_omni.normalization.language import detect_last_language
from sglang_omni.pipeline.request import Message, TextPart
from sglang_omni.protocol.speech import ReadingFields

# The end of a message shows its language.
_SAMPLE_CHARACTERS = 1_000


def build_reading(options: ReadingFields, backend: Backend) -> ReadingOptions:
    """Return how a text is read: the request's lexicon comes before the server's."""
    default = backend.reading
    return replace(
        default,
        normalization=options.normalization,
        lexicon={**default.lexicon, **(options.lexicon or {})},
        language=options.language,
    )


def build_answer_reading(messages: Sequence[Message], backend: Backend) -> ReadingOptions:
    """Return how an answer is read: a bare number in the language of the last message."""
    return replace(backend.reading, language=_detect_language(messages))


def _detect_language(messages: Sequence[Message]) -> str | None:
    """Return the language of the last message that shows one."""
    for message in reversed(messages):
        for part in reversed(message.content):
            if isinstance(part, TextPart):
                language = detect_last_language(part.text[-_SAMPLE_CHARACTERS:])
                if language is not None:
                    return language
    return None
