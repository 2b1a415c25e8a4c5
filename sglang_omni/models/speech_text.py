"""How text becomes speech requests: what a family provides to the API process. No torch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.models.capabilities import SpeechTask


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


class TextFrontEnd(Protocol):
    """Normalises the texts of one request, one after the other."""

    def split_fragments(self, text: str) -> Iterator[str]:
        """Yield normalised fragments of `text`, each of a length that one request can speak.

        A fragment is made when it is asked for. A text with nothing to speak has none.
        """


class SpeechText(Protocol):
    """Text front end, styles and descriptions of one family."""

    def open_front_end(self) -> TextFrontEnd:
        """Return a front end for one request."""

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
