"""Questions about short films: what is in them, and what happens."""

from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini.thinker.scenes import BACKGROUNDS, SHAPES, DrawnShape, Scene, visible
from cookbook.ming_mini_2.thinker.dialog import DialogItem
from cookbook.ming_mini_2.thinker.film import Film, film_sizes, moving, still

FRAMES = (2, 3, 4, 5, 6, 7, 8)
SIZES = film_sizes()
WAYS = {"right": (0, 1), "left": (0, -1), "down": (1, 0), "up": (-1, 0)}
"""Directions as steps (y, x)."""
DESCRIBE = (
    *("What happens in the video?", "Describe the video.", "What do you see in this video?"),
    *("What happens?", "What is in the video?", "What does the film show?", "What is going on?"),
)
STILL_SHARE, CHANGE_SHARE = 0.25, 0.2
"""Of the films, those without movement and those in which a colour changes; in all others one
shape moves."""


def film_items(rng: Random, lexicon: Lexicon) -> list[DialogItem]:
    """Draw questions about one new film."""
    draw = rng.random()
    frames = rng.choice(FRAMES)
    if draw < STILL_SHARE:
        return _about_still(rng, frames)
    if draw < STILL_SHARE + CHANGE_SHARE:
        return _about_change(rng, frames)
    return _about_movement(rng, frames)


def _scene(rng: Random) -> Scene:
    background, size = rng.choice(tuple(BACKGROUNDS)), rng.choice(SIZES)
    pixels = rng.randint(min(size) // 6, min(size) // 3)
    one = DrawnShape(rng.choice(SHAPES), rng.choice(visible(background)), (1, 1), pixels, (0, 0))
    return Scene(size, background, (one,), tint=rng.randrange(2**30))


def _about_movement(rng: Random, frames: int) -> list[DialogItem]:
    scene = _scene(rng)
    one, way = scene.shapes[0], rng.choice(tuple(WAYS))
    room = [(side - one.size) / 2 for side in scene.size]
    far = min(room[0] if WAYS[way][0] else room[1], min(scene.size) / 2)
    reach = rng.uniform(0.6, 1.0) * far
    steps = [-reach + 2 * reach * number / (frames - 1) for number in range(frames)]
    film = moving(scene, tuple((step * WAYS[way][0], step * WAYS[way][1]) for step in steps), 0)
    named = f"{one.colour} {one.shape}"
    return _items(
        film,
        rng,
        (
            ("describe", rng.choice(DESCRIBE), f"{article(named)} moves {way}"),
            ("describe", rng.choice(DESCRIBE), f"{article(named)} moves {way}"),
            ("direction", f"Which way does the {one.shape} move?", way),
            ("direction", "In which direction does it move?", way),
            ("yes_no", "Does anything move?", "yes"),
            ("name", "What moves?", article(named)),
            ("colour", f"What colour is the {one.shape}?", one.colour),
        ),
    )


def _about_still(rng: Random, frames: int) -> list[DialogItem]:
    scene = _scene(rng)
    one = scene.shapes[0]
    named = article(f"{one.colour} {one.shape}")
    return _items(
        still(scene, frames),
        rng,
        (
            ("describe", rng.choice(DESCRIBE), f"{named} does not move"),
            ("yes_no", "Does anything move?", "no"),
            ("name", "What shape do you see?", article(one.shape)),
            ("colour", f"What colour is the {one.shape}?", one.colour),
            ("describe", rng.choice(DESCRIBE), f"{named} does not move"),
        ),
    )


def _about_change(rng: Random, frames: int) -> list[DialogItem]:
    scene = _scene(rng)
    one = scene.shapes[0]
    other = rng.choice([name for name in visible(scene.background) if name != one.colour])
    changed = Scene(
        scene.size,
        scene.background,
        (DrawnShape(one.shape, other, one.cell, one.size, one.shift),),
        tint=scene.tint,
    )
    # Both colours last for a pair of frames, where there are enough: a token sees two frames.
    before = max(1, frames // 2 // 2 * 2)
    film = Film((scene,) * before + (changed,) * (frames - before))
    return _items(
        film,
        rng,
        (
            (
                "describe",
                rng.choice(DESCRIBE),
                f"the {one.shape} turns from {one.colour} to {other}",
            ),
            ("colour", f"What colour is the {one.shape} at the end?", other),
            ("colour", f"What colour is the {one.shape} at first?", one.colour),
            ("yes_no", "Does anything move?", "no"),
            ("name", "What shape do you see?", article(one.shape)),
        ),
    )


def _items(film: Film, rng: Random, asked: tuple[tuple[str, str, str], ...]) -> list[DialogItem]:
    chosen = {ask: (task, answer) for task, ask, answer in rng.sample(asked, 4)}
    return [
        DialogItem(
            f"film_{task}",
            ask,
            f"{answer[0].upper()}{answer[1:]}.",
            film=film,
            media_first=rng.random() < 0.8,
        )
        for ask, (task, answer) in chosen.items()
    ]
