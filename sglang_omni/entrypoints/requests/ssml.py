"""Requests whose text is SSML."""

from dataclasses import replace

from sglang_omni.models.speech_text import ReadingOptions
from sglang_omni.normalization.language import to_language
from sglang_omni.normalization.ssml import Ssml, is_ssml, parse_ssml
from sglang_omni.pipeline.request import Pause, SpeechRequest


def apply_ssml(request: SpeechRequest) -> SpeechRequest:
    """Return the request with plain text, pauses and a lexicon in place of SSML.

    A request without SSML is returned as it is. Raises `InvalidRequest` for the field `input`.
    """
    if request.verbatim or not is_ssml(request.text):
        return request
    document = read_document(request.text, request.reading)
    pauses = tuple(Pause(pause.position, pause.seconds) for pause in document.breaks)
    reading = add_document(request.reading, document)
    return replace(
        request, text=document.text, pauses=pauses, reading=reading, written=document.written
    )


def read_document(source: str, reading: ReadingOptions) -> Ssml:
    """Parse SSML. Its pronunciations are in the text itself if no lexicon is used."""
    language = to_language(reading.language)
    document = parse_ssml(source, language, normalizes=reading.uses_rules)
    return document if reading.uses_rules else document.spell_out()


def add_document(reading: ReadingOptions, document: Ssml) -> ReadingOptions:
    """Return reading options with the pronunciations and the language of a document."""
    lexicon = {**reading.lexicon, **document.pronunciations}
    return replace(reading, lexicon=lexicon, language=document.language)
