"""Changes of a picture: what a user writes, the picture before, and the picture after."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini.thinker.items import Split
from cookbook.ming_mini.thinker.scenes import BACKGROUNDS, SHAPES, UNSEEN_ON, visible
from cookbook.ming_mini_2.image.captions import (
    PHRASES,
    REVERSED,
    name_group,
    phrase,
    plural,
    refer_to,
)
from cookbook.ming_mini_2.image.scenes import (
    SceneContent,
    ShapeGroup,
    ShapePicture,
    draw_content,
    draw_size,
    join_groups,
    place,
)

RECOLOUR = ("make {} {}", "make {} {}", "change {} to {}", "paint {} {}", "colour {} {}")
RESHAPE = ("turn {} into {}", "replace {} with {}", "change {} to {}")
REMOVE = ("remove {}", "delete {}", "take away {}", "erase {}")
BACKGROUND = (
    *("make the background {}", "change the background to {}", "use a {} background"),
    *("put it on a {} background", "paint the background {}"),
)
ADD = ("add {} {} {}", "add {} {} {}", "draw {} {} {}", "put {} {} {}")


@dataclass(frozen=True)
class PictureEdit:
    """An instruction with the pictures before and after it; all else stays as it was."""

    kind: str
    instruction: str
    source: ShapePicture
    target: ShapePicture

    @property
    def split(self) -> Split | None:
        """Return the split; None for edits from a held-out picture to another, in neither."""
        if self.target.content.split == "held_out":
            return "held_out"
        return "train" if self.source.content.split == "train" else None


def recolour(picture: ShapePicture, rng: Random) -> PictureEdit | None:
    """Give a group another colour."""
    number = rng.randrange(len(picture.content.groups))
    group, others = _take(picture.content, number)
    free = [one for one in visible(picture.content.background) if one != group.colour]
    changed = replace(group, colour=rng.choice(free))
    if any(_looks_like(changed, one) for one in others):
        return None
    text = rng.choice(RECOLOUR).format(refer_to(group, others, rng), changed.colour)
    return _finish("recolour", text, picture, _change_group(picture, number, changed), rng)


def reshape(picture: ShapePicture, rng: Random) -> PictureEdit | None:
    """Give a group another shape."""
    number = rng.randrange(len(picture.content.groups))
    group, others = _take(picture.content, number)
    changed = replace(group, shape=rng.choice([one for one in SHAPES if one != group.shape]))
    if any(_looks_like(changed, one) for one in others):
        return None
    noun = article(changed.shape) if group.count == 1 else plural(changed.shape)
    text = rng.choice(RESHAPE).format(refer_to(group, others, rng), noun)
    return _finish("reshape", text, picture, _change_group(picture, number, changed), rng)


def remove(picture: ShapePicture, rng: Random) -> PictureEdit | None:
    """Take one of two groups away."""
    if len(picture.content.groups) < 2:
        return None
    number = rng.randrange(2)
    group, others = _take(picture.content, number)
    text = rng.choice(REMOVE).format(refer_to(group, others, rng))
    return _finish("remove", text, picture, _without(picture, number), rng)


def add(picture: ShapePicture, rng: Random) -> PictureEdit | None:
    """Put a group beside another: the picture after is `picture`, the one before lacks a group."""
    content = picture.content
    if len(content.groups) < 2 or content.relation == "and":
        return None
    number = rng.randrange(2)
    group, others = _take(content, number)
    relation = rng.choice((PHRASES if number == 0 else REVERSED)[content.relation])
    name = name_group(group)
    text = rng.choice(ADD).format(name, relation, refer_to(others[0], (group,), rng))
    return _finish("add", text, _without(picture, number), picture, rng)


def change_background(picture: ShapePicture, rng: Random) -> PictureEdit | None:
    """Give a picture another background, on which its shapes can be seen."""
    content = picture.content
    shown = {group.colour for group in content.groups}
    free = [
        one for one in BACKGROUNDS if one != content.background and not shown & set(UNSEEN_ON[one])
    ]
    if not free:
        return None
    background = rng.choice(free)
    changed = replace(picture, content=replace(content, background=background))
    text = rng.choice(BACKGROUND).format(background)
    return _finish("background", text, picture, changed, rng)


EDITS: dict[Callable[[ShapePicture, Random], PictureEdit | None], float] = {
    recolour: 3,
    reshape: 3,
    remove: 2,
    add: 2,
    change_background: 1,
}
"""The kinds of edits with their shares."""


def draw_edit(rng: Random) -> PictureEdit:
    """Draw a picture and a change of it."""
    while True:
        picture = place(draw_content(rng), draw_size(rng), rng)
        (make,) = rng.choices(tuple(EDITS), tuple(EDITS.values()))
        edit = make(picture, rng)
        if edit:
            return edit


def _finish(
    kind: str, text: str, source: ShapePicture, target: ShapePicture, rng: Random
) -> PictureEdit:
    return PictureEdit(kind, phrase(text, rng), source, target)


def _looks_like(one: ShapeGroup, other: ShapeGroup) -> bool:
    return (one.colour, one.shape) == (other.colour, other.shape)


def _take(content: SceneContent, number: int) -> tuple[ShapeGroup, tuple[ShapeGroup, ...]]:
    """Return a group, and the others."""
    others = tuple(one for index, one in enumerate(content.groups) if index != number)
    return content.groups[number], others


def _change_group(picture: ShapePicture, number: int, changed: ShapeGroup) -> ShapePicture:
    """Return the picture with one group changed in place."""
    groups = [*picture.content.groups]
    groups[number] = changed
    shapes = tuple(
        replace(one, shape=changed.shape, colour=changed.colour) if one.group == number else one
        for one in picture.shapes
    )
    content = picture.content
    if len(groups) == 1:
        return replace(picture, content=replace(content, groups=(changed,)), shapes=shapes)
    joined = join_groups(groups[0], groups[1], content.relation, content.background)
    if joined.groups[0] != groups[0]:
        shapes = tuple(replace(one, group=1 - one.group) for one in shapes)
    return replace(picture, content=joined, shapes=shapes)


def _without(picture: ShapePicture, number: int) -> ShapePicture:
    """Return a picture of two groups without one of them."""
    _, (kept,) = _take(picture.content, number)
    shapes = tuple(replace(one, group=0) for one in picture.shapes if one.group != number)
    content = SceneContent((kept,), background=picture.content.background)
    return replace(picture, content=content, shapes=shapes)
