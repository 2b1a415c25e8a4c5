"""Word problems as people put them: in the first person, with other verbs and other questions."""

from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.arithmetic import Story, operands, solution, tell
from cookbook.ming_mini.thinker.items import Item

ONE_STEP = (
    Story("-", "If I have {a} {things} and {use} {b}, how many are left?"),
    Story("-", "I have {a} {things} and I {use} {b} of them. How many do I have now?"),
    Story("-", "{name} has {a} {things} and {uses} {b} of them. How many remain?"),
    Story("-", "There are {a} {things} on the table. I take {b} away. How many are still there?"),
    Story("-", "I had {a} {things} and {name} took {b}. How many do I have left?"),
    Story("-", "A book has {a} pages and I have read {b}. How many pages are left to read?"),
    Story("-", "{name} is {a} years old and {other} is {b}. How much older is {name}?"),
    Story("+", "If I have {a} {things} and get {b} more, how many do I have?"),
    Story("+", "I have {a} {things} and {name} gives me {b}. How many do I have now?"),
    Story("+", "There are {a} red {things} and {b} blue {things}. How many is that in all?"),
    Story("+", "{name} is {a} years old. How old will {name} be in {b} years?"),
    Story("*", "If one {thing} costs {a} dollars, what do {b} cost?"),
    Story("*", "{name} has {a} boxes with {b} {things} in each. How many {things} is that?"),
    Story("*", "If I put {a} {things} in each of {b} bags, how many {things} do I need?"),
    Story("/", "If {b} friends share {a} {things}, how many does each get?"),
    Story("/", "I have {a} {things} for {b} children. How many does each child get?"),
)
TWO_STEPS = (
    Story("--", "I have {a} {things}, {use} {b} and then {c} more. How many are left?"),
    Story("-+", "If I have {a} {things}, {use} {b} and buy {c}, how many do I have?"),
    Story("+-", "I have {a} {things}, find {b} more and {use} {c}. How many are left?"),
    Story("*-", "I buy {a} boxes of {b} {things} and {use} {c}. How many {things} remain?"),
)
USES = (
    *(("eat", "eats"), ("lose", "loses"), ("sell", "sells"), ("use", "uses"), ("break", "breaks")),
    *(("give away", "gives away"), ("throw away", "throws away"), ("drop", "drops")),
)


def own_story(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a word problem of one or two steps, answered as those of Ming-mini are."""
    story = rng.choice(rng.choice((ONE_STEP, ONE_STEP, TWO_STEPS)))
    numbers = operands(rng, story.operations)
    use, uses = rng.choice(USES)
    text = story.text.replace("{use}", use).replace("{uses}", uses)
    task = "word_problem_1" if len(story.operations) == 1 else "word_problem_2"
    said = tell(Story(story.operations, text), numbers, rng)
    return Item(task, said, solution(story.operations, numbers), "number")
