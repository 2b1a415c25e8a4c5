"""Functions that users offer: their schemas, requests for them, arguments and results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from cookbook.ming_mini.sentences import DAYS
from cookbook.ming_mini.thinker.words import THINGS
from cookbook.ming_mini_2.thinker.dialogs import person, place
from sglang_omni.protocol.tools import Tool

Arguments = dict[str, Any]


def _text(rng: Random) -> str:
    return rng.choice(MESSAGES).format(name=person(rng), thing=rng.choice(THINGS))


def _number(rng: Random) -> int:
    return rng.randrange(1, 10 ** rng.randint(1, 3))


MESSAGES = (
    *("I am late", "hello", "see you soon", "call me back", "the {thing} is here", "good night"),
    *("I am at home", "happy birthday", "bring the {thing}", "{name} is here", "thank you"),
)
ROOMS = ("kitchen", "bedroom", "garden", "office", "bathroom", "hall", "garage", "living room")
SONGS = ("Blue Moon", "Yesterday", "Summer Rain", "River Song", "Silent Night", "Green Hills")
WEATHER = ("sunny", "cloudy", "rainy", "windy", "foggy", "snowy", "clear")
LANGUAGES = ("French", "Spanish", "German", "Italian", "Chinese", "Dutch")

VALUES: Mapping[str, Callable[[Random], Any]] = {
    "city": place,
    "name": person,
    "text": _text,
    "minutes": _number,
    "number": _number,
    "room": lambda rng: rng.choice(ROOMS),
    "song": lambda rng: rng.choice(SONGS),
    "day": lambda rng: rng.choice(DAYS),
    "thing": lambda rng: rng.choice(THINGS),
    "language": lambda rng: rng.choice(LANGUAGES),
}
"""How to draw the value of a slot."""


@dataclass(frozen=True)
class Function:
    """A function in some wordings.

    Attributes:
        names: Names that it may have.
        description: What it does.
        slots: The kind of value of every argument, by the names that the argument may have.
        asked: Requests with a place for each kind of value.
        result: Keys of its result with a kind of value each.
        told: The answer for a result, with places for the values of arguments and result.
    """

    names: tuple[str, ...]
    description: str
    slots: Mapping[tuple[str, ...], str]
    asked: tuple[str, ...]
    result: Mapping[str, str]
    told: str


RESULTS: Mapping[str, Callable[[Random], Any]] = {
    "degrees": lambda rng: rng.randint(-9, 39),
    "weather": lambda rng: rng.choice(WEATHER),
    "done": lambda rng: "done",
    "price": lambda rng: rng.randint(2, 900),
    "time": lambda rng: f"{rng.randint(0, 23)}:{rng.randint(0, 59):02d}",
    "count": lambda rng: rng.randint(0, 99),
}
"""How to draw a value of a result."""

FUNCTIONS = (
    Function(
        ("get_weather", "weather", "current_weather", "lookup_weather"),
        "Get the current weather of a city.",
        {("city", "location", "place"): "city"},
        (
            *("What is the weather in {city}?", "How is the weather in {city}?"),
            *("Is it cold in {city}?", "What's the weather like in {city}?", "Weather in {city}?"),
            *("Tell me the weather in {city}.", "Will I need a coat in {city}?"),
        ),
        {"temperature": "degrees", "condition": "weather"},
        "It is {degrees} degrees and {weather} in {city}.",
    ),
    Function(
        ("get_time", "current_time", "time_in"),
        "Get the time in a city.",
        {("city", "place", "timezone"): "city"},
        ("What time is it in {city}?", "Tell me the time in {city}.", "What's the time in {city}?"),
        {"time": "time"},
        "It is {time} in {city}.",
    ),
    Function(
        ("set_timer", "start_timer", "timer"),
        "Start a timer.",
        {("minutes", "duration"): "minutes"},
        (
            *("Set a timer for {minutes} minutes.", "Start a timer of {minutes} minutes."),
            *("Wake me in {minutes} minutes.", "Timer for {minutes} minutes, please."),
        ),
        {"status": "done"},
        "The timer is set for {minutes} minutes.",
    ),
    Function(
        ("send_message", "send_text", "message"),
        "Send a message to a person.",
        {("to", "recipient", "name"): "name", ("text", "message", "body"): "text"},
        (
            *("Send {name} the message: {text}", "Tell {name}: {text}", "Write to {name}: {text}"),
            'Send a message to {name} that says "{text}".',
        ),
        {"status": "done"},
        "I have sent the message to {name}.",
    ),
    Function(
        ("turn_on_light", "light_on", "switch_light"),
        "Turn on the light in a room.",
        {("room", "where"): "room"},
        (
            *(
                "Turn on the light in the {room}.",
                "Switch on the {room} light.",
                "Light in the {room}",
            ),
            "It is dark in the {room}, turn on the light.",
        ),
        {"status": "done"},
        "The light in the {room} is on.",
    ),
    Function(
        ("play_song", "play_music", "play"),
        "Play a song.",
        {("title", "song", "name"): "song"},
        ("Play {song}.", "I want to hear {song}.", "Play the song {song}.", "Put on {song}."),
        {"status": "done"},
        "Now playing {song}.",
    ),
    Function(
        ("create_event", "add_event", "add_to_calendar"),
        "Add an event to the calendar.",
        {("day", "date"): "day", ("title", "name", "event"): "name"},
        (
            *("Add a meeting with {name} on {day}.", "I meet {name} on {day}, note it."),
            "Put {name} into my calendar for {day}.",
        ),
        {"status": "done"},
        "I have added {name} for {day}.",
    ),
    Function(
        ("get_price", "price_of", "lookup_price"),
        "Look up the price of a thing.",
        {("item", "product", "thing"): "thing"},
        ("What does a {thing} cost?", "What is the price of a {thing}?", "How much is a {thing}?"),
        {"price": "price"},
        "A {thing} costs {price} dollars.",
    ),
    Function(
        ("search", "web_search", "find"),
        "Search for something.",
        {("query", "q", "text"): "thing"},
        (
            "Search for a {thing}.",
            "Find a {thing}.",
            "Look up {thing}.",
            "Search the web for {thing}",
        ),
        {"hits": "count"},
        "I found {count} results for {thing}.",
    ),
    Function(
        ("translate", "translate_text"),
        "Translate a text into a language.",
        {("text",): "text", ("language", "to", "target"): "language"},
        ('Translate "{text}" into {language}.', "How do I write {text} in {language}?"),
        {"status": "done"},
        "It is translated into {language}.",
    ),
    Function(
        ("order", "buy", "place_order"),
        "Order some things.",
        {("item", "product", "thing"): "thing", ("count", "quantity", "amount"): "number"},
        (
            "Order {number} times {thing}.",
            "Buy {number} of the {thing}.",
            "I need {number} {thing}s.",
        ),
        {"status": "done"},
        "I have ordered {number} {thing}s.",
    ),
    Function(
        ("stock", "count_items", "inventory"),
        "Count how many of a thing are in stock.",
        {("item", "thing"): "thing"},
        ("How many {thing}s do we have?", "How many {thing}s are in stock?", "Count our {thing}s."),
        {"count": "count"},
        "There are {count} {thing}s in stock.",
    ),
)
NUMBERS = ("minutes", "number")


@dataclass(frozen=True)
class Call:
    """A function as one user offers it, with values for a request.

    `values` are by slot, `arguments` by the names in the schema, as the function takes them.
    """

    function: Function
    tool: Tool
    values: Arguments
    arguments: Arguments


def draw_call(rng: Random, function: Function) -> Call:
    """Draw a function's name, its schema, and values for its arguments."""
    values = {slot: VALUES[slot](rng) for slot in function.slots.values()}
    names = {slot: rng.choice(choices) for choices, slot in function.slots.items()}
    taken = set[str]()
    for slot, name in names.items():
        names[slot] = slot if name in taken else name
        taken.add(names[slot])
    properties = {}
    for slot, name in names.items():
        properties[name] = {"type": "integer" if slot in NUMBERS else "string"}
        if rng.random() < 0.3:
            properties[name]["description"] = f"The {slot}."
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if rng.random() < 0.8:
        parameters["required"] = list(properties)
    if rng.random() < 0.15:
        parameters["additionalProperties"] = False
    description = function.description if rng.random() < 0.9 else ""
    tool = Tool(rng.choice(function.names), description, parameters)
    return Call(function, tool, values, {names[slot]: value for slot, value in values.items()})
