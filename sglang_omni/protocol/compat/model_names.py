"""The names that a request may give the served model."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# What programs send unless they are told otherwise, and what they use it for. `--strict-names`
# turns them off. A dated version of one, such as gpt-4o-mini-2024-07-18, counts too.
WELL_KNOWN_MODELS: Mapping[str, tuple[str, ...]] = {
    "chat": (
        *("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4o", "gpt-4o-mini"),
        *("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-5", "gpt-5-mini", "gpt-5-nano"),
        *("gpt-5-chat-latest", "gpt-5.1", "gpt-5.1-mini", "gpt-5.2", "gpt-5.4", "gpt-5.4-mini"),
        *("gpt-5.4-nano", "gpt-5.5", "gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-terra"),
        *("gpt-6-astra", "gpt-6-luna", "gpt-6-sol", "gpt-6.1-sol", "gpt-6.1-terra"),
        *("gpt-6.2-astra", "gpt-6.2-sol"),
    ),
    "text completion": ("gpt-3.5-turbo-instruct",),
    "spoken chat": (
        *("gpt-4o-audio-preview", "gpt-4o-mini-audio-preview"),
        *("gpt-audio", "gpt-audio-mini", "gpt-audio-1.5"),
    ),
    "speech": ("tts-1", "tts-1-hd", "gpt-4o-mini-tts"),
    "transcription": (
        *("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe"),
        *("gpt-transcribe", "gpt-live-transcribe", "gpt-realtime-whisper"),
    ),
    "realtime": (
        *("gpt-realtime", "gpt-realtime-mini", "gpt-realtime-1.5"),
        *("gpt-realtime-2", "gpt-realtime-2.1", "gpt-realtime-2.1-mini"),
        *("gpt-4o-realtime-preview", "gpt-4o-mini-realtime-preview"),
    ),
    "images": (
        *("dall-e-2", "dall-e-3", "gpt-image-1", "gpt-image-1-mini"),
        *("gpt-image-1.5", "chatgpt-image-latest"),
    ),
    "any, in SGLang's examples": ("default",),
}
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}")
_DATE_CHARACTERS = len("-2024-07-18")


def iterate_well_known() -> Iterator[str]:
    """Yield the names of all well-known models."""
    for names in WELL_KNOWN_MODELS.values():
        yield from names


@dataclass(frozen=True)
class ModelNames:
    """The names of one model.

    Attributes:
        served: Its own names; the first is the main one.
        aliases: The served name of each configured alias.
        well_known: Names that stand for the main one, also with a date after them. They are not
            listed: programs would show each as a model of its own.
    """

    served: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    well_known: frozenset[str] = frozenset()

    @property
    def main(self) -> str:
        """Return the name of answers to requests that name no model."""
        return self.served[0]

    @property
    def listed(self) -> tuple[str, ...]:
        """Return the names that clients are shown."""
        return (*self.served, *self.aliases)

    def find(self, name: str) -> str | None:
        """Return the served name that `name` stands for, or None."""
        if name in self.served:
            return name
        if name in self.aliases:
            return self.aliases[name]
        # Only the end is looked at: a client may send a name of 30 MB.
        if _DATE.fullmatch(name[-_DATE_CHARACTERS:]):
            name = name[:-_DATE_CHARACTERS]
        return self.main if name in self.well_known else None


def build_model_names(
    served: tuple[str, ...], aliases: Mapping[str, str], *, strict: bool
) -> ModelNames:
    """Return the names of the served model.

    Args:
        served: Its own names.
        aliases: The configured aliases.
        strict: Whether the well-known names are unknown.
    """
    if strict:
        return ModelNames(served, aliases)
    return ModelNames(served, aliases, frozenset(iterate_well_known()))
