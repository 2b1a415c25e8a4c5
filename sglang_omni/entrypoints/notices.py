"""Notices: what a client should know of an answer that is complete nevertheless."""

from typing import Any

from sglang_omni.pipeline.request import UnspokenText

# Length to which a message cuts each word; `words` has them whole.
_MAX_QUOTED_CHARACTERS = 20
_MAX_QUOTED_WORDS = 3


def build_notice(event: UnspokenText) -> dict[str, Any]:
    """Return the object that all routes send for words that the audio leaves out."""
    quoted = ", ".join(word[:_MAX_QUOTED_CHARACTERS] for word in event.words[:_MAX_QUOTED_WORDS])
    more = ", ..." if len(event.words) > _MAX_QUOTED_WORDS else ""
    reason = "the model does not speak these words; the audio leaves them out"
    return {
        "code": "unspoken_text",
        "message": f"{reason}: {quoted}{more}",
        "words": list(event.words),
    }
