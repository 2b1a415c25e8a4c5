"""Training and test items: one exchange each, and the split it belongs to."""

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

from cookbook.ming_mini.thinker.scenes import Scene

Split = Literal["train", "held_out"]
Check = Literal["exact", "number", "letter", "contains", "words"]
HELD_OUT_SHARE = 20
"""One item in this many is held out."""


@dataclass(frozen=True)
class Item:
    """A question, its media and the answer to learn.

    The user's message has the picture of `scene` or the speech of `speech`, if any, and `question`,
    which may be empty. `check` is the rule that compares an answer with `answer`; for "contains",
    any of `accept` must occur in it, and for "exact" any of them is as right as `answer`. A `fixed`
    item is a common phrase: it is always trained and never tested. `about` is the subject of a
    question (a sum, a word to spell) that could be asked in other words.
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
        """Return the content: what is shown, or else the subject, the speech or the question.

        So no picture, bare sum or spoken sentence of one split occurs in the other, in any wording.
        Stories are distinguished as a whole: the numbers of one may occur elsewhere.
        """
        if self.scene:
            return self.scene.key
        return " ".join((self.about or self.speech or self.question).lower().split())

    @property
    def split(self) -> Split:
        """Return the item's split, which follows from its content alone."""
        return "train" if self.fixed else split_of(self.key)


def with_reason(item: Item, reasoned: str, explain: bool) -> Item:
    """Return an item whose short answer and `reasoned` one are both right.

    With `explain`, the reasoned one is to be learnt.
    """
    if explain:
        return replace(item, answer=reasoned, accept=(item.answer,))
    return replace(item, accept=(reasoned,))


def split_of(key: str) -> Split:
    """Return the split of some content."""
    digest = hashlib.sha256(f"thinker {key}".encode()).digest()
    return "held_out" if int.from_bytes(digest[:4], "big") % HELD_OUT_SHARE == 0 else "train"
