"""What will be spoken for a text, and why: the words, and how each written form was read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sglang_omni.normalization.half_width import to_half_width
from sglang_omni.normalization.language import Language
from sglang_omni.normalization.normalizer import build_normalizer, join


@dataclass(frozen=True)
class SpokenForm:
    """How one written form is spoken, and the class it was read as, such as "date"."""

    written: str
    name: str
    spoken: str


@dataclass(frozen=True)
class Preview:
    """The words that are spoken for a text, and the forms that are spoken other than written."""

    text: str
    forms: tuple[SpokenForm, ...] = ()

    def with_written(self, written: Mapping[str, str]) -> "Preview":
        """Return the preview of an SSML document, which has signs in place of its elements."""
        forms = (
            replace(form, written=written[form.written], name="SSML")
            if form.written in written
            else form
            for form in self.forms
        )
        return replace(self, forms=tuple(form for form in forms if form.written != form.spoken))


def preview_text(
    text: str, lexicon: Mapping[str, str] | None = None, language: Language | None = None
) -> Preview:
    """Return what the rules make of a text.

    Args:
        text: The text, without SSML.
        lexicon: Words that are spoken other than they are written.
        language: The language of a text that shows none.
    """
    readings = tuple(build_normalizer(lexicon).read(text, 0, language))
    forms = (
        SpokenForm(text[reading.start : reading.end], reading.name, reading.words)
        for reading in readings
    )
    # The words are joined as `Normalizer.normalize` joins them.
    words = join(to_half_width(text), 0, readings)
    return Preview(words, tuple(form for form in forms if form.written != form.spoken))
