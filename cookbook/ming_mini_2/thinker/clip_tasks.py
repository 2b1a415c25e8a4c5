"""Items about a clip: to write it down, as the routes ask for it, and to answer what is asked."""

from collections.abc import Mapping
from random import Random

from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini_2.thinker.prompts import ROUTE_PROMPTS, WRITTEN
from cookbook.ming_mini_2.thinker.spoken_texts import SpokenText

ROUTE_SHARE = 0.7
"""Of the transcriptions, asked for by a route; all others by a user in a chat."""


def clip_items(text: str, texts: Mapping[str, SpokenText], rng: Random) -> list[Item]:
    """Return the items of a clip that says `text`; `texts` are those whose answers are known."""
    known = texts.get(text, SpokenText(text))
    found = [transcription(known, rng)]
    if known.answer:
        found.append(known.question())
    return found


def transcription(known: SpokenText, rng: Random) -> Item:
    """Build an item to write a clip down; a route puts its prompt in front of the clip."""
    by_route = rng.random() < ROUTE_SHARE
    ask = rng.choice(ROUTE_PROMPTS if by_route else WRITTEN)
    first = not by_route and rng.random() < 0.5
    return Item(
        "transcribe", ask, known.text, "words", speech=known.text, media_first=first,
        about=known.about, fixed=known.fixed,
    )  # fmt: skip
