"""How the thinker is asked to write down what it hears."""

import asyncio
from collections.abc import Sequence

from sglang_omni.media.vad import contains_speech
from sglang_omni.models.capabilities import LANGUAGE_NAMES, Capabilities, language_names
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.protocol.errors import InvalidRequest

TOKENS_PER_SECOND = 12
MIN_TOKENS = 32


def transcription_prompt(
    capabilities: Capabilities,
    language: str | None = None,
    words: str | None = None,
    prefix: str = "",
) -> str:
    """Return what stands before the clip: a known `language`, and `words` to expect.

    Raises `InvalidRequest` for what the checkpoint cannot do, naming the field, which `prefix`
    leads to.
    """
    known = capabilities.transcription_languages
    if language and known is not None and _code(language) not in known:
        raise InvalidRequest(
            f"{prefix}language: {capabilities.name} writes down {language_names(known)}, "
            f"not {language!r}",
            param=f"{prefix}language",
        )
    if words and not capabilities.transcription_hints:
        raise InvalidRequest(
            f"{prefix}prompt: {capabilities.name} takes no words to expect; leave it out",
            param=f"{prefix}prompt",
        )
    if not capabilities.transcription_hints:
        return capabilities.transcription_prompt
    hints = [f"The language is {language}."] if language else []
    hints += [words] if words else []
    return " ".join((capabilities.transcription_prompt, *hints))


def _code(language: str) -> str:
    """Return the ISO 639-1 code of `en`, `en-US`, `en_US` or `English`."""
    primary = language.lower().replace("_", "-").partition("-")[0]
    names = {name.lower(): code for code, name in LANGUAGE_NAMES.items()}
    return names.get(primary, primary)


async def has_speech(media: Sequence[MediaInput]) -> bool:
    """Return whether anybody speaks in one of the clips, which were opened without `recall`."""
    return await asyncio.to_thread(lambda: any(map(_contains_speech, media)))


def _contains_speech(clip: MediaInput) -> bool:
    assert clip.content is not None
    decoded, array = clip.content
    return contains_speech(array.read(decoded.layout))


def token_limit(seconds: float) -> int:
    """Return the most tokens that what is said in a clip can take."""
    return MIN_TOKENS + int(seconds * TOKENS_PER_SECOND)
