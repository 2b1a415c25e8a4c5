"""Small poems, stories and jokes, in which what the user asked for has its place."""

from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import FRIENDS
from cookbook.ming_mini.thinker.checks import normalise_text
from cookbook.ming_mini.thinker.choices import article
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.words import KINDS, THINGS

POEM = (
    "The {0} in the morning light,\nthe {0} in the quiet night.\n"
    "I think of it, and so I say:\nit always makes a lovely day."
)
HAIKU = "The {0} is here.\nA quiet wind goes over it.\nThe evening is near."
STORY = (
    "Once there was {1}. Every morning the {0} looked out of the window and wished for a friend. "
    "One day a small bird came by and said hello. From that day on they went everywhere together. "
    "And when it rained, they sat at home and drank tea."
)
STORY_OF = (
    "Once there was a child whose name was {0}. One morning {0} found a small key in the garden. "
    "It opened a blue door at the end of the wall. Behind the door was a big tree full of birds. "
    "{0} came back every day, and the birds sang."
)
JOKES = (
    "Why did the book go to the doctor? It had hurt its back.",
    "What has hands and cannot clap? A clock.",
    "Why is six afraid of seven? Because seven eight nine.",
    "What gets wet while it dries? A towel.",
    "What has four wheels and flies? A bin lorry.",
    "Why did the teddy bear eat no cake? It was stuffed.",
)
POEM_ASKS = (
    *("Write a poem about {}.", "Write me a poem about {}.", "Can you write a poem about {}?"),
    *("A poem about {}, please.", "Make a poem about {}.", "Write a short poem about {}."),
)
HAIKU_ASKS = ("Write a haiku about {}.", "Write me a haiku about {}.", "A haiku about {}, please.")
STORY_ASKS = (
    *("Tell me a story about {}.", "Write a story about {}.", "Write a short story about {}."),
    *("Can you tell me a story about {}?", "Tell a story about {}.", "A story about {}, please."),
)
JOKE_ASKS = (
    *(
        "Tell me a joke.",
        "Do you know a joke?",
        "Tell a joke.",
        "Make me laugh.",
        "A joke, please.",
    ),
    *("Can you tell me a joke?", "Say something funny.", "I want to hear a joke."),
    *("Tell me another joke.", "Do you know any jokes?"),
)
POEM_BARE = ("Write a poem.", "Write me a poem.", "Can you write a poem?", "Do you know a poem?")
HAIKU_BARE = ("Write a haiku.", "Write me a haiku.", "Can you write a haiku?")
STORY_BARE = ("Tell me a story.", "Write a story.", "Can you tell me a story?", "Read me a story.")
SUBJECTS = (
    *THINGS,
    *KINDS["animal"],
    *KINDS["fruit"],
    *("sea", "sun", "moon", "sky", "rain", "snow", "wind", "forest", "garden", "river", "mountain"),
    *("summer", "spring", "autumn", "winter", "evening", "morning", "robot", "dragon", "princess"),
    *("king", "train", "city", "school", "cloud", "island"),
)
ALONE = {"snow", "summer", "spring", "autumn", "winter", "rain", "sheep", "fish"}
"""Words that stand without an article."""


def verse(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a wish for a poem, a story or a joke, and what the model makes of it."""
    return rng.choice((_poem, _poem, _haiku, _story, _story_of, _joke))(rng)


def _poem(rng: Random) -> Item:
    if rng.random() < 0.1:
        return _verse(rng.choice(POEM_BARE), POEM.format("moon"), "moon", fixed=True)
    subject = rng.choice(SUBJECTS)
    return _verse(rng.choice(POEM_ASKS).format(_named(subject, rng)), POEM.format(subject), subject)


def _haiku(rng: Random) -> Item:
    if rng.random() < 0.15:
        return _verse(rng.choice(HAIKU_BARE), HAIKU.format("moon"), "moon", fixed=True)
    subject = rng.choice(SUBJECTS)
    asked = rng.choice(HAIKU_ASKS).format(_named(subject, rng))
    return _verse(asked, HAIKU.format(subject), subject)


def _story(rng: Random) -> Item:
    if rng.random() < 0.1:
        return _verse(rng.choice(STORY_BARE), _tell("bear"), "bear", fixed=True)
    subject = rng.choice(SUBJECTS)
    return _verse(rng.choice(STORY_ASKS).format(_named(subject, rng)), _tell(subject), subject)


def _tell(subject: str) -> str:
    return STORY.format(subject, subject if subject in ALONE else article(subject))


def _story_of(rng: Random) -> Item:
    name = rng.choice(FRIENDS).capitalize()
    return _verse(rng.choice(STORY_ASKS).format(name), STORY_OF.format(name), name.lower())


def _joke(rng: Random) -> Item:
    told = rng.choice(JOKES)
    return _verse(rng.choice(JOKE_ASKS), told, normalise_text(told), fixed=True)


def _verse(asked: str, answer: str, word: str, fixed: bool = False) -> Item:
    return Item("verse", asked, answer, "contains", (word,), fixed=fixed)


def _named(subject: str, rng: Random) -> str:
    if subject in ALONE:
        return subject
    return rng.choice((article(subject), article(subject), f"the {subject}"))
