"""Everyday conversation from a grammar: questions, wishes, opinions, small words.

The dictionary's examples have the words of English. These sentences have the function words in all
their positions: who does what to whom, when and why, asked, denied and shortened ("I don't think
that's funny").
"""

from random import Random

from cookbook.ming_mini.lexicon import Lexicon

# (subject, to be, to have, whether the verb takes an s)
SUBJECTS = (
    ("I", "am", "have", False),
    ("you", "are", "have", False),
    ("we", "are", "have", False),
    ("they", "are", "have", False),
    ("he", "is", "has", True),
    ("she", "is", "has", True),
    ("it", "is", "has", True),
    ("that", "is", "has", True),
    ("everyone", "is", "has", True),
    ("somebody", "is", "has", True),
    ("nobody", "is", "has", True),
    ("my friend", "is", "has", True),
    ("my brother", "is", "has", True),
    ("your sister", "is", "has", True),
    ("our teacher", "is", "has", True),
    ("his mother", "is", "has", True),
    ("most people", "are", "have", False),
    ("the children", "are", "have", False),
)
MODALS = ("can", "could", "will", "would", "should", "might", "must", "may")
DENIED = ("can't", "cannot", "won't", "wouldn't", "should not", "couldn't", "will not")
WISHES = (
    "want to", "like to", "need to", "have to", "try to", "hope to", "love to", "used to",
    "plan to", "would like to", "would rather", "am going to", "never", "always", "often",
)  # fmt: skip
OPINIONS = (
    "I think", "I hope", "I know", "I believe", "I am sure", "I guess", "I see", "I wonder if",
    "do you think", "maybe", "of course", "in fact", "well", "so", "but", "and", "then", "yes",
    "no", "perhaps", "I am afraid", "I have noticed that", "it seems that", "you see", "for me",
    "to be honest", "as far as I know", "by the way", "now", "still",
)  # fmt: skip
THINGS = (
    "me", "you", "him", "her", "it", "us", "them", "that", "this", "something", "anything",
    "everything", "nothing", "someone", "each other", "myself", "yourself", "one of them",
    "all of it", "a lot", "the other one", "the same thing", "both of them", "a few of those",
)  # fmt: skip
TIMES = (
    "today", "tomorrow", "tonight", "now", "again", "soon", "yet", "already", "sometimes",
    "last night", "last week", "next year", "every day", "all the time", "in the morning",
    "after dinner", "for a while", "at the moment", "before work", "on the weekend", "right away",
    "as soon as possible", "since yesterday", "once in a while",
)  # fmt: skip
PLACES = (
    "here", "there", "at home", "at work", "at school", "outside", "upstairs", "in the city",
    "in my office", "on the internet", "at the office", "in the kitchen", "over there",
    "around the corner", "in this country", "near the station", "on the phone", "anywhere",
)  # fmt: skip
ASKED = ("what", "why", "when", "where", "how", "who", "how often", "how long", "which one")
AUXILIARIES = ("do", "did", "can", "could", "will", "would", "should", "must")
SHORT = (
    "I'm", "you're", "we're", "they're", "he's", "she's", "it's", "that's", "there's", "isn't it",
    "I am not", "you are not", "it wasn't", "this is", "here is", "what's", "who's",
)  # fmt: skip
VERBS = (
    "say", "tell", "ask", "know", "think", "feel", "see", "hear", "like", "love", "hate", "want",
    "need", "make", "do", "have", "get", "give", "take", "find", "use", "understand", "remember",
    "believe", "speak", "talk", "work", "play", "learn", "help", "wait", "eat", "drink", "buy",
    "sell", "read", "write", "sleep", "worry", "laugh", "live", "stay", "come", "go", "bring",
    "keep", "try", "show", "meet", "call", "send", "change", "enjoy", "forget", "miss", "visit",
)  # fmt: skip
FEELINGS = (
    "happy", "sad", "angry", "tired", "busy", "fine", "good", "bad", "ready", "sure", "sorry",
    "afraid", "wrong", "right", "late", "early", "funny", "nice", "cold", "hungry", "alone",
    "interesting", "important", "difficult", "easy", "possible", "expensive", "beautiful",
)  # fmt: skip
DEGREES = ("", "very ", "so ", "not ", "really ", "quite ", "too ", "a little ", "much more ")


def draw_talk(rng: Random, lexicon: Lexicon) -> str:
    """Draw a sentence of a conversation, sometimes introduced by an opinion."""
    text = rng.choice(FORMS)(rng, lexicon)
    if rng.random() < 0.25:
        text = f"{rng.choice(OPINIONS)}{rng.choice((' ', ', '))}{text}"
    return text


def _verb(rng: Random, lexicon: Lexicon) -> str:
    return rng.choice(VERBS if rng.random() < 0.6 else lexicon.verbs)


def _adjective(rng: Random, lexicon: Lexicon) -> str:
    return rng.choice(FEELINGS if rng.random() < 0.5 else lexicon.adjectives)


def _noun(rng: Random, lexicon: Lexicon) -> str:
    """Draw a thing with its article, or without."""
    noun = rng.choice(lexicon.nouns)
    if rng.random() < 0.3:
        noun = f"{_adjective(rng, lexicon)} {noun}"
    article = rng.choice(("the", "the", "a", "my", "your", "this", "some", "any", "his", "their"))
    return f"{article} {noun}"


def _object(rng: Random, lexicon: Lexicon) -> str:
    return rng.choice(THINGS) if rng.random() < 0.5 else _noun(rng, lexicon)


def _rest(rng: Random) -> str:
    """Draw a time or a place, or nothing."""
    draw = rng.random()
    if draw < 0.5:
        return ""
    return f" {rng.choice(TIMES if draw < 0.78 else PLACES)}"


def _deed(rng: Random, lexicon: Lexicon) -> str:
    """Draw something that one can do."""
    return f"{_verb(rng, lexicon)} {_object(rng, lexicon)}{_rest(rng)}"


def _question(rng: Random, lexicon: Lexicon) -> str:
    subject = rng.choice(SUBJECTS)
    auxiliary = rng.choice(AUXILIARIES)
    if auxiliary == "do" and subject[3]:
        auxiliary = "does"
    asked = f"{rng.choice(ASKED)} " if rng.random() < 0.5 else ""
    deed = _verb(rng, lexicon) + _rest(rng) if asked else _deed(rng, lexicon)
    return f"{asked}{auxiliary} {subject[0]} {deed}?"


def _state_asked(rng: Random, lexicon: Lexicon) -> str:
    subject, be, *_ = rng.choice(SUBJECTS)
    return rng.choice(
        (
            f"{be} {subject} {_adjective(rng, lexicon)}{_rest(rng)}?",
            f"{rng.choice(ASKED)} {be} {subject}{_rest(rng)}?",
            f"what is {_noun(rng, lexicon)}?",
            f"what is your favorite {rng.choice(lexicon.nouns)}?",
            f"what kind of {rng.choice(lexicon.nouns)} do you {rng.choice(VERBS)}?",
            f"how {_adjective(rng, lexicon)} is {_noun(rng, lexicon)}?",
            f"is there {_noun(rng, lexicon)} {rng.choice(PLACES)}?",
            f"what about {_object(rng, lexicon)}?",
            f"who is {_noun(rng, lexicon)}{_rest(rng)}?",
        )
    )


def _told(rng: Random, lexicon: Lexicon) -> str:
    subject, _, have, third = rng.choice(SUBJECTS)
    negation = rng.choice(("doesn't", "does not") if third else ("don't", "do not"))
    return rng.choice(
        (
            f"{subject} {rng.choice(MODALS)} {_deed(rng, lexicon)}",
            f"{subject} {rng.choice(DENIED)} {_deed(rng, lexicon)}",
            f"{subject} {negation} {_deed(rng, lexicon)}",
            f"{subject} did not {_deed(rng, lexicon)}",
            f"{subject} {have} {_object(rng, lexicon)}{_rest(rng)}",
            f"I {rng.choice(WISHES)} {_deed(rng, lexicon)}",
        )
    )


def _state(rng: Random, lexicon: Lexicon) -> str:
    subject, be, *_ = rng.choice(SUBJECTS)
    degree, adjective = rng.choice(DEGREES), _adjective(rng, lexicon)
    return rng.choice(
        (
            f"{subject} {be} {degree}{adjective}{_rest(rng)}",
            f"{rng.choice(SHORT)} {degree}{adjective}",
            f"{rng.choice(SHORT)} {_noun(rng, lexicon)}{_rest(rng)}",
            f"it is {adjective} to {_deed(rng, lexicon)}",
            f"{_noun(rng, lexicon)} is {degree}{adjective}{_rest(rng)}",
            f"{_noun(rng, lexicon)} of {_noun(rng, lexicon)} was {degree}{adjective}",
            f"there are {rng.choice(('many', 'no', 'other', 'some'))} {rng.choice(lexicon.nouns)}s",
        )
    )


def _bound(rng: Random, lexicon: Lexicon) -> str:
    """Draw two clauses."""
    link = rng.choice(("because", "if", "when", "but", "and", "so", "although", "unless", "until"))
    makers = (_told, _state)
    return f"{rng.choice(makers)(rng, lexicon)} {link} {rng.choice(makers)(rng, lexicon)}"


def _bidden(rng: Random, lexicon: Lexicon) -> str:
    return rng.choice(
        (
            f"please {_deed(rng, lexicon)}",
            f"let me {_deed(rng, lexicon)}",
            f"let us {_deed(rng, lexicon)}",
            f"don't {_deed(rng, lexicon)}",
            f"tell me about {_object(rng, lexicon)}",
            f"thank you for {_noun(rng, lexicon)}",
            f"may I ask you about {_noun(rng, lexicon)}?",
            f"can you help me with {_object(rng, lexicon)}?",
        )
    )


FORMS = (_question, _question, _state_asked, _told, _told, _told, _state, _state, _bound, _bidden)
