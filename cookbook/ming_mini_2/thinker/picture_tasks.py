"""Questions about pictures of one thing, about renderings like photographs, and about signs."""

from dataclasses import dataclass, replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker import picture_tasks as first
from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.picture_question import PictureQuestion
from cookbook.ming_mini.thinker.position_tasks import (
    describe_cell,
    relative_position,
    shape_at_place,
    where_is_unique_shape,
)
from cookbook.ming_mini.thinker.scenes import (
    BACKGROUNDS,
    CELLS,
    SHAPES,
    SIZES,
    DrawnShape,
    Mark,
    Scene,
    visible,
)
from cookbook.ming_mini.thinker.text_tasks import word
from cookbook.ming_mini_2.thinker.objects import THINGS
from cookbook.ming_mini_2.thinker.photos import SHAPED, SURFACES, Photo

DESCRIBE = (
    *("What is in the picture?", "What do you see?", "Describe the picture.", "What is this?"),
    *("What can you see in this picture?", "What does the picture show?", "Describe this image."),
    *("What is in this image?", "What do you see here?", "Can you describe this picture?"),
)
NAME_IT = ("What is this?", "What thing is this?", "What object is in the picture?", "Name it.")
COLOUR_OF_IT = ("What colour is it?", "Which colour is it?", "What color is it?")
HOW_MANY = ("How many things are there?", "How many objects do you see?", "How many are there?")
IS_THERE = ("Is there {} in the picture?", "Do you see {}?", "Can you see {}?")
SIGN_ASKS = (
    *("What does the sign say?", "What is written on the sign?", "Read the sign."),
    *("What is written here?", "Read the text.", "What does it say?", "What text is this?"),
)
SIGNS = """
stop, exit, open, closed, push, pull, no entry, danger, sale, taxi, bus, hotel, bank, cafe,
school, office, police, parking, slow, wet paint, no smoking, please wait, way out, keep left, to
let, for sale, fire exit, welcome, free, ring bell, no dogs, toilets, library, museum, station,
airport, one way
"""
SIGN_TEXTS = tuple(" ".join(text.split()) for text in SIGNS.split(","))
MAX_SIGN = 9
"""The most characters of a sign, which must fit into a picture at a readable size."""
SINGLE_SHARE, PHOTO_SHARE, SIGN_SHARE, PLACES_SHARE = 0.16, 0.16, 0.14, 0.24
"""Of the pictures; all others are those of Ming-mini."""
PLACES = ("What is where?", "Where is everything?", "What do you see, and where?")
MAX_PLACED = 4
"""The most shapes in a picture whose places are told."""


@dataclass(frozen=True)
class Sign(Scene):
    """A picture with a line of words; a blank is nothing to recognise."""

    def marks(self) -> list[Mark]:
        """Return the letters from left to right, without blanks."""
        return [mark for mark in super().marks() if mark.name.strip()]


def picture_items(rng: Random, lexicon: Lexicon, lessons: bool) -> list[Item]:
    """Draw questions about one new picture; `lessons` includes tasks for training alone."""
    draw = rng.random()
    if draw < SINGLE_SHARE:
        return _about_one(single_shape(rng), rng, "single")
    if draw < SINGLE_SHARE + PHOTO_SHARE:
        return _about_one(photo(rng), rng, "photo")
    if draw < SINGLE_SHARE + PHOTO_SHARE + SIGN_SHARE:
        return _about_sign(rng, lexicon)
    if draw < SINGLE_SHARE + PHOTO_SHARE + SIGN_SHARE + PLACES_SHARE:
        return _about_places(rng, lessons)
    return first.picture_items(rng, lexicon, lessons)


def single_shape(rng: Random) -> Scene:
    """Draw one shape anywhere in a picture, small or as large as the picture."""
    background, size = rng.choice(tuple(BACKGROUNDS)), rng.choice(SIZES)
    shape, colour = rng.choice(SHAPES), rng.choice(visible(background))
    return Scene(size, background, (_alone(rng, size, shape, colour),), tint=rng.randrange(2**30))


def photo(rng: Random) -> Photo:
    """Draw one thing or one shape in the manner of a photograph."""
    size, surface = rng.choice(SIZES), rng.choice(tuple(SURFACES))
    shape = rng.choice((*THINGS, *THINGS, *SHAPED))
    colours = [one for one in visible("grey") if one not in ("black", "white")]
    one = _alone(rng, size, shape, rng.choice(colours))
    return Photo(size, surface, (one,), None, rng.randrange(2**30), surface=surface)


def _alone(rng: Random, size: tuple[int, int], shape: str, colour: str) -> DrawnShape:
    """Draw a shape around the middle cell, within the picture."""
    pixels = rng.randint(min(size) // 4, min(size) * 9 // 10)
    free = [(side - pixels) // 2 for side in size]
    # Around its own cell, so that places still agree with the cells of the grid.
    reach = [min(one, side // (2 * CELLS) - 1) for one, side in zip(free, size, strict=True)]
    shift = (rng.randint(-reach[0], reach[0]), rng.randint(-reach[1], reach[1]))
    return DrawnShape(shape, colour, (1, 1), pixels, shift)


def _about_one(scene: Scene, rng: Random, kind: str) -> list[Item]:
    one = scene.shapes[0]
    named, noun = article(f"{one.colour} {one.shape}"), article(one.shape)
    wanted: list[tuple[str, str, str]] = [
        ("describe", rng.choice(DESCRIBE), named),
        ("describe", rng.choice(DESCRIBE), named),
        ("colour", f"What colour is the {one.shape}?", one.colour),
        ("colour", rng.choice(COLOUR_OF_IT), one.colour),
        ("count", rng.choice(HOW_MANY), "1"),
        ("name", "Which shape is it?" if one.shape in SHAPES else NAME_IT[1], noun),
    ]
    wanted.append(("yes_no", *_is_there(scene, rng)))
    chosen = {ask: (task, ask, answer) for task, ask, answer in rng.sample(wanted, 5)}
    return [
        Item(
            f"picture_{kind}_{task}",
            ask,
            f"{answer[0].upper()}{answer[1:]}.",
            "number" if task == "count" else "exact",
            scene=scene,
            media_first=rng.random() < 0.8,
        )
        for task, ask, answer in chosen.values()
    ]


def _is_there(scene: Scene, rng: Random) -> tuple[str, str]:
    one, true = scene.shapes[0], rng.random() < 0.5
    colour, shape = one.colour, one.shape
    if not true:
        others = [name for name in (*SHAPES, *THINGS) if name != shape]
        colours = [name for name in visible("grey") if name != colour]
        if rng.random() < 0.5:
            shape = rng.choice(others)
        else:
            colour = rng.choice(colours)
    return rng.choice(IS_THERE).format(article(f"{colour} {shape}")), "yes" if true else "no"


def _about_sign(rng: Random, lexicon: Lexicon) -> list[Item]:
    """Draw a sign with one or two words and ask what it says."""
    text = rng.choice(SIGN_TEXTS)
    if rng.random() < 0.5:
        text = " ".join(word(rng, lexicon) for _ in range(rng.choice((1, 1, 2))))
    shown = rng.choice((text.upper(), text.upper(), text.capitalize(), text))
    if len(shown) > MAX_SIGN:
        return _about_sign(rng, lexicon)
    scene = Sign(**vars(first.lettered_scene(shown, rng)))
    item = Item(
        "picture_sign", rng.choice(SIGN_ASKS), text, "exact", scene=scene,
        media_first=rng.random() < 0.8,
    )  # fmt: skip
    return [item, replace(item, question=rng.choice(SIGN_ASKS))]


def _about_places(rng: Random, lessons: bool) -> list[Item]:
    """Draw some shapes, and ask for the place of each, and of all of them.

    An answer with the places of all shapes teaches more than one with a single place: asked for
    one place alone, a first training of this recipe learnt 35 % of them.
    """
    scene = first.shape_scene(rng)
    scene = replace(scene, shapes=scene.shapes[:MAX_PLACED])
    asked = [relative_position(scene, rng)]
    if lessons:
        asked.append(shape_at_place(scene, rng))
    asked += [where_is_unique_shape(scene, rng) for _ in scene.shapes]
    if len({(one.colour, one.shape) for one in scene.shapes}) == len(scene.shapes):
        asked.append(PictureQuestion("picture_places", rng.choice(PLACES), places(scene), ()))
    found = {one.question: one for one in asked if one}
    return [first.picture_item(one, scene, rng) for one in found.values()]


def places(scene: Scene) -> str:
    """Return the shapes of a scene and their places, from the top left to the bottom right."""
    ordered = sorted(scene.shapes, key=lambda one: one.cell)
    return first.listed(
        [f"{article(f'{one.colour} {one.shape}')} {describe_cell(one.cell)}" for one in ordered]
    )
