"""Word tables of the tasks: kinds of things, opposites, verbs in their forms."""

from dataclasses import dataclass

_KINDS = {
    "animal": "dog cat horse cow bird fish sheep rabbit mouse lion tiger bear duck goat pig snake",
    "fruit": "apple banana orange pear cherry grape lemon peach plum melon mango berry",
    "colour": "red blue green yellow black white purple pink brown grey gold silver",
    "number": "one two three four five six seven eight nine ten eleven twelve",
    "vehicle": "car bus train bicycle truck boat ship plane tram taxi van motorcycle",
    "piece of furniture": "chair table bed sofa desk shelf bench stool cupboard wardrobe",
    "part of the body": "hand foot head arm leg nose ear eye mouth finger knee shoulder",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "month": (
        "January February March April May June July August September October November December"
    ),
    "piece of clothing": "shirt coat hat shoe sock dress skirt jacket scarf glove belt sweater",
    "drink": "water milk tea coffee juice beer wine lemonade cocoa soda",
    "tool": "hammer saw drill spade axe knife scissors needle brush rake",
}
KINDS = {kind: tuple(words.split()) for kind, words in _KINDS.items()}

_OPPOSITES = """
hot cold; big small; long short; old new; high low; fast slow; open closed; full empty; hard soft;
early late; light dark; wet dry; clean dirty; rich poor; strong weak; happy sad; good bad; near far;
left right; up down; in out; day night; first last; loud quiet; thick thin; wide narrow; warm cool;
black white; cheap expensive; easy difficult; sweet sour; alive dead;
inside outside; top bottom; north south; east west; always never; yes no; begin end; buy sell;
push pull; win lose; laugh cry; love hate; come go; give take; ask answer; remember forget
"""
OPPOSITES = tuple(tuple(pair.split()) for pair in _OPPOSITES.split(";"))

_THINGS = """
apple ball bird boat book bottle cake car card chair clock coin cookie cup egg flower hat key lamp
lemon letter marble orange pear pen pencil phone picture plate ring rose shell shirt shoe stamp
sticker stone table ticket toy tree
"""
THINGS = tuple(_THINGS.split())
"""Nouns whose plural is an s."""


@dataclass(frozen=True)
class Verb:
    """A verb: he ..., yesterday he ..., it was ... by him."""

    base: str
    third: str
    past: str
    participle: str


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(Verb(*line.split()) for line in table.strip().splitlines())


VERBS = _verbs("""
open opens opened opened
close closes closed closed
see sees saw seen
find finds found found
buy buys bought bought
sell sells sold sold
make makes made made
take takes took taken
give gives gave given
write writes wrote written
draw draws drew drawn
break breaks broke broken
wash washes washed washed
paint paints painted painted
carry carries carried carried
hold holds held held
bring brings brought brought
keep keeps kept kept
lose loses lost lost
want wants wanted wanted
clean cleans cleaned cleaned
move moves moved moved
need needs needed needed
like likes liked liked
use uses used used
hide hides hid hidden
choose chooses chose chosen
throw throws threw thrown
catch catches caught caught
forget forgets forgot forgotten
""")
