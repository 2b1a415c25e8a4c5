"""Small talk, and refusals of what the model cannot do."""

from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import FRIENDS
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.words import THINGS


@dataclass(frozen=True)
class SmallTalk:
    """What people say, the answer, and words of which the answer must contain one.

    `{name}` is a first name; a line with an unseen name is held out.
    """

    said: tuple[str, ...]
    answer: str
    accept: tuple[str, ...]


HELLO = "Hello! How can I help you?"
SELF = "I am Ming-mini, a small model. I can read, see, listen and speak a little."
TALKS = (
    SmallTalk(("Hello", "Hi", "Hello there", "Hi there", "Hey", "Greetings"), HELLO, ("hello",)),
    SmallTalk(("Hello Ming", "Hi Ming", "Hey, are you there?", "Hello?"), HELLO, ("hello",)),
    SmallTalk(("Good morning", "Morning"), "Good morning! How can I help you?", ("good morning",)),
    SmallTalk(("Good afternoon",), "Good afternoon! How can I help you?", ("good afternoon",)),
    SmallTalk(("Good evening",), "Good evening! How can I help you?", ("good evening",)),
    SmallTalk(
        ("Hello, I am {name}", "Hi, my name is {name}", "I am {name}", "My name is {name}"),
        "Hello, {name}! How can I help you?",
        ("{name}",),
    ),
    SmallTalk(
        ("Good morning, this is {name}", "Good morning, I am {name}"),
        "Good morning, {name}!",
        ("{name}",),
    ),
    SmallTalk(("Say hello to {name}", "Please greet {name}"), "Hello, {name}!", ("{name}",)),
    SmallTalk(
        (
            "How are you?",
            "How are you today?",
            "How do you do?",
            "Are you well?",
            "How is it going?",
        ),
        "I am fine, thank you. How can I help you?",
        ("fine",),
    ),
    SmallTalk(
        (
            "Who are you?",
            "What are you?",
            "What is your name?",
            "Tell me about yourself.",
            "Are you a robot?",
        ),
        SELF,
        ("ming-mini",),
    ),
    SmallTalk(
        ("What can you do?", "How can you help me?", "What do you know?", "Help"),
        "I can repeat and spell words, count, compare, do sums, look and listen.",
        ("sums", "spell"),
    ),
    SmallTalk(
        ("Thank you", "Thanks", "Thanks a lot", "Thank you very much", "Thank you, Ming"),
        "You are welcome!",
        ("welcome",),
    ),
    SmallTalk(
        ("Thank you, {name} is happy", "{name} says thank you"), "You are welcome!", ("welcome",)
    ),
    SmallTalk(
        ("Bye", "Goodbye", "Bye bye", "See you", "See you soon", "Good night", "See you tomorrow"),
        "Goodbye! Have a nice day!",
        ("goodbye",),
    ),
    SmallTalk(
        ("Goodbye from {name}", "{name} has to go now", "{name} says goodbye"),
        "Goodbye, {name}!",
        ("goodbye",),
    ),
    SmallTalk(
        ("Yes", "Okay", "All right", "Sure", "Good", "Great"),
        "Good. What else can I do?",
        ("good",),
    ),
    SmallTalk(
        ("No", "Nothing", "No, thank you"), "All right. I am here if you need me.", ("all right",)
    ),
    SmallTalk(
        ("Sorry", "I am sorry", "Excuse me"), "No problem. How can I help you?", ("no problem",)
    ),
    SmallTalk(
        ("Well done", "Very good", "You are great", "Good job"),
        "Thank you! I am glad to help.",
        ("thank",),
    ),
)

DO = "I am sorry, I cannot do that. I am only a small model."
KNOW = "I am sorry, I do not know that. I am only a small model."
DECLINED = ("cannot", "do not know")
_CANNOT_DO = """
Book a flight to {place}; Send a message to {name}; Call {name} for me; Order a {thing} for {name};
Buy me a {thing}; Write a poem about a {thing}; Write a long story about {name}; Play some music;
Translate this {thing} into French; Remind {name} to call at {hour}; Set a timer for {hour} minutes;
Draw a {thing} for {name}; Open the website of {place}; Write a program that sorts {thing}s;
Turn on the light in {place}; Send {hour} dollars to {name}; Search the internet for a {thing};
Read my letters from {name}; Delete the picture of {name}; Take a photo of {place}
"""
_DO_NOT_KNOW = """
What is the weather in {place}?; Who is the president of {place}?; How many people live in {place}?;
What did {name} do yesterday?; What time is it in {place}?; When was {name} born?;
How far is it to {place}?; What does a {thing} cost in {place}?; Who won the game in {place}?;
What is the capital of {place}?; Where does {name} live?; Why is the {thing} of {name} so old?;
What will happen to {name} in {hour} years?; Who invented the {thing}?; Is {name} at home?;
What is the telephone number of {name}?; What is the news from {place}?; How old is {name}?
"""
_PLACES = """
Paris London Berlin China Spain Rome Tokyo Canada Egypt India Moscow Boston Norway Peru Madrid
Chicago Vienna Kenya Mexico Brazil Sweden Dublin Oslo Cairo Texas Japan Poland Turkey
"""
PLACES = _PLACES.split()


def _lines(table: str) -> tuple[str, ...]:
    return tuple(" ".join(line.split()) for line in table.split(";"))


REFUSED = tuple((line, DO) for line in _lines(_CANNOT_DO)) + tuple(
    (line, KNOW) for line in _lines(_DO_NOT_KNOW)
)


def small_talk(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a greeting, thanks, or a question about the model."""
    talk = rng.choice(TALKS)
    line, who = rng.choice(talk.said), rng.choice(FRIENDS).capitalize()
    accept = tuple(word.format(name=who).lower() for word in talk.accept)
    return Item(
        "small_talk",
        spoken_variant(line.format(name=who), rng),
        talk.answer.format(name=who),
        "contains",
        accept,
        fixed="{name}" not in line,
    )


def spoken_variant(line: str, rng: Random) -> str:
    """Draw a variant of a line with or without capitals and punctuation."""
    if line[-1].isalnum():
        line += rng.choice(("", ".", "!"))
    draw = rng.random()
    if draw < 0.15:
        return line.lower()
    return line.rstrip("?!.") if draw < 0.25 else line


def decline(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a request that the model cannot fulfil; its answer says so."""
    line, answer = rng.choice(REFUSED)
    text = line.format(
        name=rng.choice(FRIENDS).capitalize(),
        place=rng.choice(PLACES),
        thing=rng.choice(THINGS),
        hour=rng.randint(2, 60),
    )
    polite = rng.choice(("", "", "Please ")) if answer == DO else ""
    text = polite + (text[0].lower() + text[1:] if polite else text)
    return Item("decline", spoken_variant(text, rng), answer, "contains", DECLINED)
