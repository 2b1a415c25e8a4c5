"""How text becomes speech requests: what a family provides to the API process. No torch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sglang_omni.models.capabilities import SpeechTask
from sglang_omni.models.written_words import WrittenText
from sglang_omni.normalization.language import to_language
from sglang_omni.normalization.preview import Preview, preview_text


@dataclass(frozen=True)
class SpeechStyle:
    """How a fragment is to sound, beside its voice.

    Attributes:
        description: Opening of the prompt; None for the model's own.
        instruction: Instruction in the model's own form; None for none.
        cfg: Strength of guidance; None for the checkpoint's.
        sigma: Scale of the noise that the sampler adds.
        temperature: Temperature of that noise; none is added at 0.
    """

    description: str | None = None
    instruction: str | None = None
    cfg: float | None = None
    sigma: float = 0.25
    temperature: float = 0.0


@dataclass(frozen=True)
class ReadingOptions:
    """How the text of one request is turned into words.

    Attributes:
        front_end: The server's own rules, or those of the model's reference implementation.
        normalization: "auto" spells out numbers, links, units and the like; "none" speaks the text
            as it is written.
        lexicon: How words are to be pronounced: written form to what is spoken instead.
        language: Language of a text that does not show one, such as a bare number; ISO 639-1.
    """

    front_end: Literal["default", "reference"] = "default"
    normalization: Literal["auto", "none"] = "auto"
    lexicon: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None

    @property
    def uses_rules(self) -> bool:
        """Whether the server's own rules and the lexicon apply."""
        return self.front_end == "default" and self.normalization == "auto"


DEFAULT_READING = ReadingOptions()


def preview_by_rules(text: str, options: ReadingOptions = DEFAULT_READING) -> Preview:
    """Return what the server's own rules make of a text."""
    return preview_text(text, options.lexicon, to_language(options.language))


class TextFrontEnd(Protocol):
    """Normalises the texts of one request, one after the other."""

    def safe_cut(self, text: str, end: int) -> int:
        """Return where `text`, which may go on, can be cut: at `end` or before; 0 for nowhere.

        `text` follows what `split_fragments` was given. Both parts are then read as they are
        within the whole text.
        """

    def split_fragments(self, text: str) -> Iterator[str]:
        """Yield normalised fragments of `text`, each of a length that one request can speak.

        A fragment is made when it is asked for. A text with nothing to speak has none.
        """


class SpeechText(Protocol):
    """Text front end, styles and descriptions of one family."""

    def open_front_end(
        self, options: ReadingOptions = DEFAULT_READING, written: WrittenText | None = None
    ) -> TextFrontEnd:
        """Return a front end for one request.

        It adds what it reads to `written`, so that fragments can be traced back to the text. A
        front end that does not know how it reads a text adds nothing.
        """

    def preview(self, text: str, options: ReadingOptions = DEFAULT_READING) -> Preview:
        """Return what will be spoken for a text, and how its written forms are read."""

    def warm_up(self) -> None:
        """Load what the front end needs, so that no request waits for it."""

    def style(
        self, task: SpeechTask, instructions: Mapping[str, str | None] | None = None
    ) -> SpeechStyle:
        """Return the style of a task under instructions by field (emotion, speed, pitch, ...)."""

    def description(self, task: SpeechTask, text: str) -> str:
        """Return a description of music or sounds as the model takes it.

        Raises:
            InvalidRequest: The description lacks what the model needs.
        """

    def max_description_s(self, text: str) -> float:
        """Return how many seconds of music or sounds a description may take."""
