"""The package uses the terms of its field, and one name for one class."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import sglang_omni

PACKAGE = Path(sglang_omni.__file__).parent

# Names that earlier versions used for what has a standard term.
RETIRED_CLASSES = """
    AccessLayer Append Beat BoundedProtocol Budget CalledItem Calling Carried Child Claim Clear
    Commit Control Cut Dialect Door DrainLayer Ear Edges EventReply Expander Farewell Film Floor
    Followers Gate Heard Lane LentRows Listener Load Mailbox Manner Medium Mouth Observer Outbox
    OwnEncoders Pace Perception PictureRank Plan Promise Question Responder Rows8 Run Seats Senses
    Session Shelf Sound Spell SpelledMarks SpokenAnswers SpokenItem Stepped StreamedReply Tally
    Template Terms Turnstile UnreadWatch Uplink VoiceBook VoiceMaker WholeReply WrittenItem
"""
RETIRED_NAMES = """
    AS_IT_LIKES abandon ahead_s asked began blaming cut eight_bits few_rows has_lark homes intake
    knows_speakers leftovers likely_kv_tokens listeners look mask_of most narrate next_up obituary
    piece_of placed refuse refused_at_the_door scratch settle together turn_away weights_mark whence
    within
"""


@cache
def parse_package() -> dict[str, ast.Module]:
    """Return the syntax tree of each module, by its path in the package."""
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def iterate_identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.Name(name) | ast.Attribute(_, name) | ast.arg(name):
                yield name
            case ast.keyword(str(name)):
                yield name


def test_each_class_name_is_defined_once() -> None:
    counts = Counter(
        node.name
        for tree in parse_package().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    assert counts, "no class found"
    assert not [name for name, count in counts.items() if count > 1]


def test_retired_class_names_are_not_used() -> None:
    found = [
        f"{path}: {node.name}"
        for path, tree in parse_package().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.strip("_") in RETIRED_CLASSES.split()
    ]
    assert not found


def test_retired_names_are_not_used() -> None:
    found = [
        f"{path}: {name}"
        for path, tree in parse_package().items()
        for name in iterate_identifiers(tree)
        if name.strip("_") in RETIRED_NAMES.split()
    ]
    found += [path for path in parse_package() if Path(path).stem in RETIRED_NAMES.split()]
    assert not found
