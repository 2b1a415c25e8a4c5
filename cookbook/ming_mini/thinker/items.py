"""What the thinker is taught and tested with: one exchange, and which split it belongs to."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from cookbook.ming_mini.thinker.scenes import Scene

Split = Literal["train", "held_out"]
Check = Literal["exact", "number", "letter", "contains", "words"]
HELD_OUT_SHARE = 20
"""One item in so many is held out."""


@dataclass(frozen=True)
class Item:
    """A question, its media and the answer to learn.

    The user's message holds the picture of `scene` or the speech of `speech`, if any, and
    `question`, which may be empty. `check` says how an answer is judged against `answer`;
    for "contains" any of `accept` must occur in it. A `fixed` item is a phrase that everybody must
    know: it is always trained, and never tested. `about` is what a question is really about (a
    sum, a word to spell), where it could be asked in other words.
    """

    task: str
    question: str
    answer: str
    check: Check = "exact"
    accept: tuple[str, ...] = ()
    scene: Scene | None = None
    speech: str | None = None
    media_first: bool = True
    fixed: bool = False
    about: str = ""

    @property
    def key(self) -> str:
        """The content: what is shown, or else what it is about, what is said or what is asked.

        So no picture, no bare sum and no spoken sentence of one split is met in the other, in
        whatever words it is asked for. Stories are told apart as a whole: the numbers of one may
        be met elsewhere.
        """
        if self.scene:
            return self.scene.key
        return " ".join((self.about or self.speech or self.question).lower().split())

    @property
    def split(self) -> Split:
        """Where the item belongs; it follows from its content alone."""
        return "train" if self.fixed else split_of(self.key)


def split_of(key: str) -> Split:
    """The split of some content."""
    digest = hashlib.sha256(f"thinker {key}".encode()).digest()
    return "held_out" if int.from_bytes(digest[:4], "big") % HELD_OUT_SHARE == 0 else "train"
