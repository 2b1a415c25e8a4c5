"""Grammars of calls, thoughts and documents, as SGLang's back end for them reads them."""

import json
import re
from typing import Any

import pytest
from llguidance import LLMatcher
from llguidance.hf import from_tokenizer
from transformers import AutoTokenizer, TokenizersBackend

from sglang_omni.models.answer_grammar import build_answer_grammar
from sglang_omni.models.ming.prompt.segments import SpecialToken
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.prompt.tools import render_tool_call
from sglang_omni.models.pending_call import CALL_TOKENS
from sglang_omni.protocol.tools import Tool, ToolCall, ToolChoice
from tests.testing.golden import TINY

PLACE = {
    "type": "object",
    "properties": {"at": {"$ref": "#/$defs/place"}, "times": {"type": "integer"}},
    "required": ["at"],
    "additionalProperties": False,
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Look",
    "description": 'Written // as "comments"\nand /* rules */: %json {',
    "$defs": {"place": {"enum": ["mill", "mühle"]}},
}
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}}
NESTED = {
    "properties": {
        "at": POINT,
        "all": {"type": "array", "items": POINT},
        "free": {**POINT, "additionalProperties": True},
    }
}
LOOK = Tool("look", "", PLACE)
WAIT = Tool("wait", "", {})
STRICT = Tool("look", "", PLACE, strict=True)
SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
TOKENIZER = ThinkerTokenizer(TINY)
IDS = {mark: TOKENIZER.token_id(mark) for mark in CALL_TOKENS}
CALLED = re.compile(r"(look|wait|listen)\((.*?)\)")
LOOKING = 'look({"at": "mill", "times": 2})'
MUST = ToolChoice(forced=True)
ONE = ToolChoice(forced=True, parallel=False)


@pytest.fixture(scope="module")
def vocabulary() -> Any:
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    assert isinstance(tokenizer, TokenizersBackend)
    return from_tokenizer(tokenizer)


def call_tokens(name: str, arguments: str) -> list[int]:
    opening, inside, closing = render_tool_call(ToolCall(name, arguments))
    assert isinstance(opening, SpecialToken)
    assert isinstance(closing, SpecialToken)
    return [IDS[opening.token], *TOKENIZER.encode_text(str(inside)), IDS[closing.token]]


def tokens(answer: str) -> list[int]:
    """Ids of an answer, in which `look(...)` stands for a call."""
    ids, (text, *calls) = [], CALLED.split(answer)
    ids += TOKENIZER.encode_text(text)
    for name, arguments, text in zip(calls[::3], calls[1::3], calls[2::3], strict=True):
        ids += [*call_tokens(name, arguments), *TOKENIZER.encode_text(text)]
    return ids


def fits(vocabulary: Any, grammar: str | None, answer: str) -> bool:
    """Whether the grammar lets the model write exactly this and then stop."""
    assert grammar is not None
    matcher = LLMatcher(vocabulary, grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    ids = tokens(answer)
    return matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()


CASES: list[tuple[str, tuple[Any, ...], list[str], list[str]]] = [
    (
        "forced",
        ([LOOK, WAIT], MUST, None, False),
        [
            LOOKING,
            'look({"at": "mühle"})',
            "wait({})",
            f"{LOOKING}\nwait({{}})",
        ],
        [
            "",
            "Yes.",
            f"Well. {LOOKING}",
            f"{LOOKING} Done.",
            f"{LOOKING}\n\n{LOOKING}",
            "look({})",
            'look({"at": "river"})',
            'look({"at": "mill", "more": 1})',
            "listen({})",
            "wait([])",
            'wait({"for": [1.5, null]})',
        ],
    ),
    (
        "forced, free arguments",
        ([Tool("wait", "", {"type": "object"})], ONE, None, False),
        ["wait({})", 'wait({"for": [1.5, null]})'],
        [],
    ),
    (
        "forced, objects inside",
        ([Tool("look", "", NESTED)], ONE, None, False),
        ['look({"at": {"x": 1}, "all": [{"x": 2}], "free": {"y": 3}})'],
        [
            'look({"at": {"x": 1, "y": 2}})',
            'look({"all": [{"y": 2}]})',
            'look({"more": 1})',
        ],
    ),
    ("forced, one", ([LOOK, WAIT], ONE, None, False), [LOOKING], [f"{LOOKING}\n{LOOKING}"]),
    (
        "forced, by name",
        ([LOOK, WAIT], ToolChoice(forced=True, only=("wait",)), None, False),
        ["wait({})"],
        [LOOKING],
    ),
    (
        "forced, after a thought",
        ([LOOK], ONE, None, True),
        [
            LOOKING,
            f"<think>\nWhere <b>is</b> it?\n</think>\n\n{LOOKING}",
            f"<think></think>{LOOKING}",
        ],
        [
            "<think>Hm.</think>",
            f"<think>Hm. {LOOKING}",
            f"<think>\n{LOOKING}\n</think>\n{LOOKING}",
            f"<think>a</think>b</think>{LOOKING}",
        ],
    ),
    (
        "strict",
        ([STRICT, WAIT], ToolChoice(), None, False),
        [
            "Just text.",
            "",
            f"Well.\n{LOOKING}",
            f"{LOOKING}\nwait({{}})",
            "<think>Hm.</think> Yes.",
        ],
        ['look({"at": "river"})', "Well.\nlook({})", "listen({})", "a <tool_call> spelled out"],
    ),
    (
        "strict, one",
        ([STRICT], ToolChoice(parallel=False), None, False),
        ["Yes.", LOOKING],
        [f"{LOOKING}\n{LOOKING}"],
    ),
    (
        "one strict, one not",
        ([STRICT, Tool("wait", "", PLACE)], ToolChoice(), None, False),
        [LOOKING, "wait({})"],
        ["look({})"],
    ),
    (
        "some of them",
        ([LOOK, WAIT], ToolChoice(only=("wait",)), None, False),
        ["Yes.", "wait({})"],
        [LOOKING],
    ),
    (
        "a schema or calls",
        ([LOOK], ToolChoice(), SCHEMA, False),
        ['{"n":3}', LOOKING],
        ["Yes.", "{}", "wait({})", f'{{"n":3}}\n{LOOKING}', f"Well.\n{LOOKING}"],
    ),
    ("calls before a schema", ([LOOK], MUST, SCHEMA, False), [LOOKING], ['{"n":3}']),
    (
        "a schema after a thought",
        ([], ToolChoice(), SCHEMA, True),
        ['{"n":3}', '<think>\nThree?\n</think>\n\n{"n":3}'],
        ["<think>\nThree?\n</think>\n\nThree.", "<think>Three?", '<think>a</think> {"n":3}'],
    ),
]


@pytest.mark.parametrize(
    ("asked", "good", "bad"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_an_answer_can_be_what_was_asked_for_and_nothing_else(
    vocabulary: Any, asked: tuple[Any, ...], good: list[str], bad: list[str]
) -> None:
    grammar = build_answer_grammar(*asked)
    assert [answer for answer in good if not fits(vocabulary, grammar, answer)] == []
    assert [answer for answer in bad if fits(vocabulary, grammar, answer)] == []


@pytest.mark.parametrize(
    "asked",
    [
        ([], ToolChoice(), None, False),
        ([], ToolChoice(), None, True),
        ([LOOK], ToolChoice(), None, True),
        ([LOOK], ToolChoice(parallel=False), None, False),
        ([], ToolChoice(), SCHEMA, False),
    ],
)
def test_what_is_free_or_a_schema_alone_needs_no_grammar(asked: tuple[Any, ...]) -> None:
    assert build_answer_grammar(*asked) is None


@pytest.mark.parametrize("name", ['a"b\\', "größe", "a\nb"])
def test_a_name_may_have_any_characters(vocabulary: Any, name: str) -> None:
    grammar = build_answer_grammar([Tool(name, "", {})], ONE, None, False)
    assert grammar is not None
    matcher = LLMatcher(vocabulary, grammar, log_level=0)
    ids = call_tokens(name, "{}")
    assert matcher.try_consume_tokens(ids) == len(ids)
    assert matcher.is_accepting()
