"""What a picture shows as class numbers, which the condition rows must tell (in training only)."""

from cookbook.ming_mini.thinker.scenes import BACKGROUNDS, COLOURS, SHAPES
from cookbook.ming_mini_2.image.scenes import MAX_COUNT, RELATIONS, SceneContent

_COLOURS, _BACKGROUNDS = tuple(COLOURS), tuple(BACKGROUNDS)
CLASSES = (
    *(2 * (MAX_COUNT + 1, len(COLOURS) + 1, len(SHAPES) + 1)),
    *(len(RELATIONS), len(BACKGROUNDS)),
)
"""The number of classes of each label: count, colour and shape of both groups, relation,
background. Class 0 of the first six is "no group"."""


def label_content(content: SceneContent) -> list[int]:
    """Return the labels of a scene."""
    labels: list[int] = []
    for group in content.groups:
        labels += [group.count, 1 + _COLOURS.index(group.colour), 1 + SHAPES.index(group.shape)]
    labels += [0] * (6 - len(labels))
    return [*labels, RELATIONS.index(content.relation), _BACKGROUNDS.index(content.background)]
