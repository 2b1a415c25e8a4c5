"""What a user asks for in words: captions of scenes, and instructions that change them."""

from random import Random

from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini_2.image.scenes import SceneContent, ShapeGroup

NUMBERS = ("", "one", "two", "three", "four")
PHRASES = {
    "above": ("above", "above", "over"),
    "left of": ("to the left of", "left of"),
    "and": ("and", "and", "next to"),
}
REVERSED = {
    "above": ("below", "below", "under"),
    "left of": ("to the right of", "right of"),
    "and": ("and", "and", "next to"),
}
"""What the second group is to the first."""
REQUESTS = (
    *("{}", "{}", "{}.", "Draw {}.", "draw {}", "Draw {}", "Please draw {}.", "Paint {}."),
    *("A picture of {}.", "Draw a picture of {}.", "an image of {}", "Show {}."),
    *("Create an image of {}.", "Generate a picture of {}.", "A drawing of {}"),
    *("I would like a picture of {}.", "Make a picture with {}."),
)


def plural(shape: str) -> str:
    """Return the plural of a shape's name."""
    return f"{shape}es" if shape == "cross" else f"{shape}s"


def name_group(group: ShapeGroup) -> str:
    """Return a group with its number: "a red circle", "two blue squares"."""
    if group.count == 1:
        return article(f"{group.colour} {group.shape}")
    return f"{NUMBERS[group.count]} {group.colour} {plural(group.shape)}"


def caption(content: SceneContent, rng: Random) -> str:
    """Return a description of a scene, in one of the ways to say it."""
    names = [name_group(group) for group in content.groups]
    text = names[0]
    if len(names) == 2:
        if rng.random() < 0.5:
            text = f"{names[0]} {rng.choice(PHRASES[content.relation])} {names[1]}"
        else:
            text = f"{names[1]} {rng.choice(REVERSED[content.relation])} {names[0]}"
    # The white background is what is drawn if none is named.
    if content.background != "white":
        text = f"{text} on {article(content.background)} background"
    elif rng.random() < 0.1:
        text = f"{text} on a white background"
    return text


def request(content: SceneContent, rng: Random) -> str:
    """Return what a user writes to have a scene drawn."""
    form = rng.choice(REQUESTS)
    text = form.format(caption(content, rng))
    return f"{text[0].upper()}{text[1:]}" if form[0] == "{" and rng.random() < 0.5 else text


def refer_to(group: ShapeGroup, others: tuple[ShapeGroup, ...], rng: Random) -> str:
    """Return how a group is named in an instruction: "the circle", or "the red circle"."""
    noun = group.shape if group.count == 1 else plural(group.shape)
    ambiguous = any(one.shape == group.shape for one in others)
    return f"the {group.colour} {noun}" if ambiguous or rng.random() < 0.3 else f"the {noun}"


def phrase(text: str, rng: Random) -> str:
    """Return an instruction, sometimes as a sentence."""
    if rng.random() < 0.5:
        text = f"{text[0].upper()}{text[1:]}"
    return f"{text}." if rng.random() < 0.5 else text
