"""Questions about drawn scenes: colour, shape, count, place, words, yes or no, and choices."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.choices import article, options
from cookbook.ming_mini.thinker.items import Item, with_reason
from cookbook.ming_mini.thinker.picture_question import (
    PictureQuestion,
    find_shapes,
    yes_no_question,
)
from cookbook.ming_mini.thinker.position_tasks import (
    describe_cell,
    relative_position,
    shape_at_place,
    where_is_shape,
    where_is_unique_shape,
)
from cookbook.ming_mini.thinker.scenes import (
    BACKGROUNDS,
    CELLS,
    FONTS,
    SHAPES,
    SIZES,
    DrawnShape,
    Lettering,
    Scene,
    font,
    visible,
)
from cookbook.ming_mini.thinker.text_tasks import word

QUESTIONS_A_SCENE = 6
MAX_SHAPES = 7
LETTERED_SHARE, TEXT_COLOUR_SHARE = 0.55, 0.4
"""Of the pictures, with a text; and of those, with a question for its colour besides."""
MARGIN = 6
MIN_LETTER_PIXELS, MAX_LETTER_PIXELS = 24, 48
"""Heights of letters in pixels. A token is 32 pixels wide: hardly ever do more than three
of these letters stand in one."""
LINE = 1.2
"""Height of a line in letters."""
SIGN_SIZES = ((64, 192), (64, 256), (96, 192), (96, 256))
"""Of signs, in which there is little to look at but letters."""
LETTERED_SIZES = (*SIZES, *SIGN_SIZES)
"""Of pictures with a text."""


def picture_items(
    rng: Random, lexicon: Lexicon, lessons: bool = False, explain: bool = False
) -> list[Item]:
    """Draw different questions about one new scene.

    `lessons` includes the tasks for training alone. With `explain`, counts and comparisons of
    places are answered with the places before them, by which they are found.
    """
    if rng.random() < LETTERED_SHARE:
        return _reading(rng, lexicon)
    scene = shape_scene(rng)
    about = ABOUT_SHAPES | LESSONS if lessons else ABOUT_SHAPES
    makers = rng.choices(tuple(about), tuple(about.values()), k=QUESTIONS_A_SCENE)
    asked = [maker(scene, rng) for maker in makers]
    found = {one.question: one for one in asked if one}
    return [picture_item(one, scene, rng, explain) for one in found.values()]


def picture_item(asked: PictureQuestion, scene: Scene, rng: Random, explain: bool = False) -> Item:
    """Return the item of a question, sometimes a multiple choice if it has wrong answers."""
    first = rng.random() < 0.7
    if len(asked.wrong) > 1 and rng.random() < 0.25:
        return replace(choice_item(asked, scene, rng), media_first=first)
    return replace(free_item(asked, scene, explain), media_first=first)


def choice_item(asked: PictureQuestion, scene: Scene, rng: Random) -> Item:
    """Return the item of a question with choices, of which the answer names the letter."""
    wrong = rng.sample(asked.wrong, min(3, len(asked.wrong)))
    text, letter = options(asked.question, asked.right, wrong, rng)
    return Item("picture_choice", text, letter, "letter", scene=scene)


def free_item(asked: PictureQuestion, scene: Scene, explain: bool = False) -> Item:
    """Return the item of a question without choices; with `explain`, its answer has the reason."""
    answer = asked.right if asked.task == "picture_read" else _sentence(asked.right)
    item = Item(asked.task, asked.question, answer, asked.check, scene=scene)
    return (
        with_reason(item, _sentence(asked.reason + asked.right), explain) if asked.reason else item
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def shape_scene(rng: Random) -> Scene:
    """Draw one to seven shapes in different cells.

    They are of few kinds, so that there is something to count.
    """
    background = rng.choice(tuple(BACKGROUNDS))
    size = rng.choice(SIZES)
    kinds = rng.sample(SHAPES, rng.randint(1, 4))
    colours = rng.sample(visible(background), rng.randint(1, 4))
    cells = rng.sample(range(CELLS * CELLS), rng.randint(1, MAX_SHAPES))
    drawn = tuple(draw_in_cell(rng, size, divmod(cell, CELLS), kinds, colours) for cell in cells)
    return Scene(size, background, drawn, tint=rng.randrange(2**30))


def draw_in_cell(
    rng: Random,
    size: tuple[int, int],
    cell: tuple[int, int],
    kinds: Sequence[str],
    colours: Sequence[str],
) -> DrawnShape:
    """Draw a shape of one of some kinds and colours in a cell (row, column) of a picture."""
    room = min(size) // CELLS
    pixels = rng.randint(room // 2, room - MARGIN)
    free = (room - pixels) // 2
    shift = (rng.randint(-free, free), rng.randint(-free, free))
    return DrawnShape(rng.choice(kinds), rng.choice(colours), cell, pixels, shift)


def _colour(scene: Scene, rng: Random) -> PictureQuestion | None:
    alone = [one for one in scene.shapes if len(find_shapes(scene, one.shape)) == 1]
    if not alone:
        return None
    one = rng.choice(alone)
    ask = rng.choice((f"What colour is the {one.shape}?", f"Which colour has the {one.shape}?"))
    wrong = tuple(c for c in visible(scene.background) if c != one.colour)
    return PictureQuestion("picture_colour", ask, one.colour, wrong)


def _shape(scene: Scene, rng: Random) -> PictureQuestion | None:
    alone = [one for one in scene.shapes if len(find_shapes(scene, None, one.colour)) == 1]
    if not alone:
        return None
    one = rng.choice(alone)
    ask = rng.choice((f"Which shape is {one.colour}?", f"What is the {one.colour} shape?"))
    wrong = tuple(article(shape) for shape in SHAPES if shape != one.shape)
    return PictureQuestion("picture_shape", ask, article(one.shape), wrong)


def _count(scene: Scene, rng: Random) -> PictureQuestion | None:
    one = rng.choice(scene.shapes)
    what, found = rng.choice(
        (
            ("shapes", scene.shapes),
            (plural(one.shape), find_shapes(scene, one.shape)),
            (f"{one.colour} shapes", find_shapes(scene, None, one.colour)),
            (f"{one.colour} {plural(one.shape)}", find_shapes(scene, one.shape, one.colour)),
        )
    )
    ask = rng.choice((f"How many {what} are there?", f"How many {what} do you see?"))
    wrong = tuple(str(n) for n in range(1, MAX_SHAPES + 2) if n != len(found))
    places = listed([describe_cell(cell) for cell in sorted(one.cell for one in found)])
    return PictureQuestion("picture_count", ask, str(len(found)), wrong, "number", f"{places}: ")


def plural(shape: str) -> str:
    """Return the plural of a shape."""
    return f"{shape}es" if shape == "cross" else f"{shape}s"


def _exists(scene: Scene, rng: Random) -> PictureQuestion | None:
    there = {(one.shape, one.colour) for one in scene.shapes}
    kinds, hues = ({pair[part] for pair in there} for part in (0, 1))
    absent = [(s, c) for s in SHAPES for c in visible(scene.background) if (s, c) not in there]
    # A missing pair whose colour and shape both occur; or half of one, if no such pair is left.
    near = [(s, c) for s, c in absent if s in kinds and c in hues]
    near = near or [(s, c) for s, c in absent if s in kinds or c in hues]
    true = rng.random() < 0.5
    wrong = near if near and rng.random() < 0.7 else absent
    shape, colour = rng.choice(sorted(there) if true else wrong)
    return yes_no_question(f"Is there a {colour} {shape}?".replace("a orange", "an orange"), true)


def _describe(scene: Scene, rng: Random) -> PictureQuestion | None:
    if len(scene.shapes) > 3:
        return None
    ordered = sorted(scene.shapes, key=lambda one: one.cell)
    names = [article(f"{one.colour} {one.shape}") for one in ordered]
    ask = rng.choice(("What is in the picture?", "What do you see?", "Describe the picture."))
    return PictureQuestion("picture_describe", ask, listed(names), ())


def listed(names: Sequence[str]) -> str:
    """Join names: a, b and c."""
    head = ", ".join(names[:-1])
    return f"{head} and {names[-1]}" if head else names[-1]


ABOUT_SHAPES: dict[Callable[[Scene, Random], PictureQuestion | None], float] = {
    _colour: 2,
    _shape: 1,
    _count: 3,
    where_is_unique_shape: 3,
    _exists: 2,
    relative_position: 1.5,
    _describe: 1,
}
"""Questions and their relative frequencies."""

LESSONS: dict[Callable[[Scene, Random], PictureQuestion | None], float] = {
    where_is_shape: 2,
    shape_at_place: 1.5,
}
"""Questions for training alone, so that the measured tasks do not change."""


def _reading(rng: Random, lexicon: Lexicon) -> list[Item]:
    """Draw a word or a number to read, and sometimes ask for its colour."""
    number = rng.random() < 0.35
    text = str(rng.randrange(10 ** rng.randint(1, 5))) if number else word(rng, lexicon)
    shown = text if number else rng.choice((text, text.upper(), text.capitalize()))
    scene = lettered_scene(shown, rng)
    what = "number" if number else "word"
    asks = (f"What {what} is written here?", f"Read the {what}.", f"Which {what} do you see?")
    assert scene.lettering
    colour = scene.lettering.colour
    wrong = tuple(c for c in visible(scene.background) if c != colour)
    asked = [
        PictureQuestion("picture_read", rng.choice(asks), text, (), "number" if number else "exact")
    ]
    if rng.random() < TEXT_COLOUR_SHARE:
        asked.append(
            PictureQuestion("picture_colour", f"What colour is the {what}?", colour, wrong)
        )
    return [picture_item(one, scene, rng) for one in asked]


def lettered_scene(text: str, rng: Random) -> Scene:
    """Draw a line of text, half the time in the middle of the picture and else anywhere in it."""
    face, background = rng.choice(FONTS), rng.choice(tuple(BACKGROUNDS))
    least = font(face, MIN_LETTER_PIXELS).getlength(text) + 2 * MARGIN
    size = rng.choice([one for one in LETTERED_SIZES if least <= one[1]])
    pixels = rng.randint(MIN_LETTER_PIXELS, MAX_LETTER_PIXELS)
    while font(face, pixels).getlength(text) > size[1] - 2 * MARGIN:
        pixels -= 1
    free = (
        size[0] - round(LINE * pixels) - 1,
        size[1] - round(font(face, pixels).getlength(text)) - MARGIN,
    )
    top_left = (rng.randint(0, free[0]), rng.randint(MARGIN, free[1]))
    if rng.random() < 0.5:
        top_left = (free[0] // 2, (MARGIN + free[1]) // 2)
    colour = rng.choice(visible(background))
    return Scene(
        size, background, (), Lettering(text, colour, face, pixels, top_left), rng.randrange(2**30)
    )
