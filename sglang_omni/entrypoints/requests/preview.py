"""What will be spoken for a text, which may be SSML."""

from collections.abc import Callable

from sglang_omni.entrypoints.requests.ssml import add_document, read_document
from sglang_omni.models.speech_text import ReadingOptions
from sglang_omni.normalization.preview import Preview
from sglang_omni.normalization.ssml import is_ssml


def preview_input(
    text: str, reading: ReadingOptions, read: Callable[[str, ReadingOptions], Preview]
) -> Preview:
    """Return what will be spoken. Raises `InvalidRequest` for SSML that is not supported.

    Args:
        text: Plain text or SSML.
        reading: How it is read.
        read: Returns the preview of plain text.
    """
    if not is_ssml(text):
        return read(text, reading)
    document = read_document(text, reading)
    preview = read(document.text, add_document(reading, document))
    return preview.with_written(document.written)
