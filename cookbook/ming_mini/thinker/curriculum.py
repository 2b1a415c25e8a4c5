"""What a training is about: the names of its tasks and of what its pictures show."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cookbook.ming_mini.thinker.picture_labels import NAMES
from cookbook.ming_mini.thinker.tasks import KINDS, TASKS, Kind

BOOST = {
    "choice": 3.0,
    "yes_no": 4.0,
    "compare": 2.0,
    "picture_read": 2.0,
    "picture_where": 3.0,
    "picture_find": 2.0,
    "picture_choice": 3.0,
}
"""Tasks whose answers count more than others in the loss, and how much."""
MAX_TOKENS = 448


@dataclass(frozen=True)
class Curriculum:
    """The tasks of a training.

    Attributes:
        kinds: The kinds of examples, in the order of their shares.
        tasks: The names of all tasks; shards have their numbers.
        boosts: How much the answers of a task count; 1 for all others.
        marks: The names of what a token of a picture may show; empty first.
        max_tokens: The most tokens of an example.
    """

    kinds: tuple[Kind, ...] = KINDS
    tasks: tuple[str, ...] = TASKS
    boosts: Mapping[str, float] = field(default_factory=lambda: BOOST)
    marks: tuple[str, ...] = NAMES
    max_tokens: int = MAX_TOKENS


MINI = Curriculum()
"""The curriculum of Ming-mini."""
