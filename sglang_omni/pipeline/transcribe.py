"""Prompts and limits for transcription by the thinker."""

import asyncio
from collections.abc import Sequence

from sglang_omni.media.vad import contains_speech
from sglang_omni.models.capabilities import LANGUAGE_NAMES, Capabilities, language_names
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.protocol.errors import InvalidRequest

TOKENS_PER_SECOND = 12
MIN_TOKENS = 32


def build_transcription_prompt(
    capabilities: Capabilities,
    language: str | None = None,
    hint: str | None = None,
    prefix: str = "",
) -> str:
    """Return the text that precedes the audio in a transcription request.

    Args:
        capabilities: What the checkpoint supports.
        language: The language of the audio, if known.
        hint: Words to expect, or the text before the audio.
        prefix: The path to the request fields `language` and `prompt`, for error messages.

    Raises:
        InvalidRequest: The checkpoint does not support the language or hints.
    """
    languages = capabilities.transcription_languages
    if language and languages is not None and to_language_code(language) not in languages:
        raise InvalidRequest(
            f"{prefix}language: {capabilities.name} transcribes {language_names(languages)}, "
            f"not {language!r}",
            param=f"{prefix}language",
        )
    if hint and not capabilities.transcription_hints:
        raise InvalidRequest(
            f"{prefix}prompt: {capabilities.name} does not support a transcription prompt; "
            "leave it out",
            param=f"{prefix}prompt",
        )
    if not capabilities.transcription_hints:
        return capabilities.transcription_prompt
    hints = [f"The language is {language}."] if language else []
    hints += [hint] if hint else []
    return " ".join((capabilities.transcription_prompt, *hints))


def build_translation_prompt(capabilities: Capabilities, hint: str | None = None) -> str:
    """Return the text that precedes the audio in a request for its translation into English.

    A model that hears only English gives the English text by transcribing it.

    Raises:
        InvalidRequest: The checkpoint does not translate, or does not support hints.
    """
    if capabilities.translation_prompt is None and capabilities.transcription_languages == ("en",):
        return build_transcription_prompt(capabilities, hint=hint)
    if capabilities.translation_prompt is None:
        raise InvalidRequest(f"model: {capabilities.name} does not translate speech", param="model")
    return " ".join((capabilities.translation_prompt, *([hint] if hint else [])))


def to_language_code(language: str) -> str:
    """Return the ISO 639-1 code of a language given as `en`, `en-US`, `en_US` or `English`."""
    primary = language.lower().replace("_", "-").partition("-")[0]
    names = {name.lower(): code for code, name in LANGUAGE_NAMES.items()}
    return names.get(primary, primary)


async def has_speech(media: Sequence[MediaInput]) -> bool:
    """Return whether any of the audio clips contains speech.

    They must be opened without the cache: a cached embedding has no samples.
    """
    return await asyncio.to_thread(lambda: any(map(_contains_speech, media)))


def _contains_speech(clip: MediaInput) -> bool:
    assert clip.content is not None
    decoded, array = clip.content
    return contains_speech(array.read(decoded.layout))


def max_transcript_tokens(seconds: float) -> int:
    """Return an upper bound for the tokens of a transcript of `seconds` of audio."""
    return MIN_TOKENS + int(seconds * TOKENS_PER_SECOND)
