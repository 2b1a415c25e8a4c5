"""What an answer may be under a grammar and the bounds beside it."""

import json
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer
from llguidance.numpy import allocate_token_bitmask
from tokenizers import Tokenizer

from sglang_omni.engines.grammar_checker.bounds import (
    BOUNDED_DOCUMENT,
    MAX_DIGITS,
    MAX_WHITESPACE,
    build_bounded_grammar,
)
from sglang_omni.engines.grammar_checker.contract import JSON_OPTIONS
from sglang_omni.engines.grammar_checker.matcher import (
    BoundedMatcher,
    GrammarError,
    check_grammar,
    compile_grammar,
)
from sglang_omni.models.answer_grammar import build_answer_grammar
from sglang_omni.protocol.tools import Tool, ToolChoice
from tests.testing.golden import TINY

NUMBER = {"type": "number"}
PLAIN = [
    (NUMBER, "-12.5"),
    (NUMBER, "6.02e23"),
    (NUMBER, "1" * MAX_DIGITS),
    (NUMBER, f"0.{'3' * MAX_DIGITS}"),
    ({"type": "integer"}, "-9007199254740991"),
    ({"type": "integer"}, str(2**64)),
    (NUMBER, "0.30000000000000004"),
    (NUMBER, "-2.2250738585072014e-308"),
    ({"type": "string"}, '"' + "7" * 200 + '"'),
    ({}, '{"a":[1,2.5,null,true,{"b":"\\n \\" z"}],"c":{}}'),
]
ENDLESS = [
    (NUMBER, "1" * (MAX_DIGITS + 1)),
    (NUMBER, f"0.{'3' * (MAX_DIGITS + 1)}"),
    (NUMBER, "1e9999"),
    ({}, f'{{"a":[{"5" * (MAX_DIGITS + 1)}]}}'),
]


@pytest.fixture(scope="module")
def tokenizer() -> LLTokenizer:
    return LLTokenizer(Tokenizer.from_file(str(TINY / "tokenizer.json")).to_str())


def written(matcher: BoundedMatcher, tokenizer: LLTokenizer, text: str) -> str:
    """How much of `text` the masks let a model write."""
    said, mask = "", allocate_token_bitmask(1, tokenizer.vocab_size)
    for token in tokenizer.tokenize_str(text):
        mask[:] = -1
        matcher.fill(mask, 0)
        if not mask[0, token // 32] >> (token % 32) & 1:
            return said
        matcher.accept(token)
        said += tokenizer.decode_str([token])
    return said


@pytest.mark.parametrize(("schema", "text"), PLAIN)
def test_what_clients_ask_for_can_be_written(
    tokenizer: LLTokenizer, schema: Any, text: str
) -> None:
    matcher = compile_grammar(tokenizer, "json", json.dumps(schema), JSON_OPTIONS)
    assert written(matcher.copy(), tokenizer, text) == text


@pytest.mark.parametrize(("schema", "text"), ENDLESS)
def test_a_number_ends(tokenizer: LLTokenizer, schema: Any, text: str) -> None:
    matcher = compile_grammar(tokenizer, "json", json.dumps(schema), JSON_OPTIONS)
    said = written(matcher, tokenizer, text)
    assert text.startswith(said)
    assert len(said) < len(text)


def test_a_grammar_that_asks_for_longer_numbers_has_them(tokenizer: LLTokenizer) -> None:
    grammar, bounds = (
        LLMatcher(tokenizer, LLMatcher.grammar_from_lark(lark), log_level=0)
        for lark in ("start: /[0-9]{60}/", BOUNDED_DOCUMENT)
    )
    matcher = BoundedMatcher(grammar, bounds, tokenizer.vocab_size)
    assert written(matcher, tokenizer, "7" * 70) == "7" * 60


def test_a_schema_that_asks_for_smaller_numbers_has_them(tokenizer: LLTokenizer) -> None:
    schema = {"type": "integer", "minimum": 1, "maximum": 31}
    matcher = compile_grammar(tokenizer, "json", json.dumps(schema), JSON_OPTIONS)
    assert [written(matcher.copy(), tokenizer, text) for text in ("31", "32", "0")] == [
        *("31", "3", ""),
    ]


OBJECT = {"type": "object"}
NAMED = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}


@pytest.mark.parametrize("space", [" ", "\n", "\t", " \n"])
@pytest.mark.parametrize("options", [JSON_OPTIONS, {"whitespace_flexible": True}], ids=str)
@pytest.mark.parametrize(
    ("schema", "before"),
    [(OBJECT, ""), (OBJECT, "{"), (OBJECT, '{"b":'), (OBJECT, "{}"), (NAMED, '{"a":[1,')],
)
def test_white_space_in_a_document_ends(
    tokenizer: LLTokenizer, schema: Any, before: str, options: Any, space: str
) -> None:
    """However the operator configures it: what clients ask for as json_object or json_schema."""
    matcher = compile_grammar(tokenizer, "json", json.dumps(schema), options)
    said = written(matcher, tokenizer, before + space * 1000)
    assert said.startswith(before)
    blanks = len(said) - len(before)
    assert blanks == 0 if options is JSON_OPTIONS else blanks <= MAX_WHITESPACE


@pytest.mark.parametrize("thinking", [False, True])
def test_a_number_in_a_call_ends(tokenizer: LLTokenizer, thinking: bool) -> None:
    add = Tool("add", "", {"type": "object", "properties": {"a": NUMBER}, "required": ["a"]})
    lark = build_answer_grammar([add], ToolChoice(forced=True), None, thinking)
    assert lark is not None
    assert "%json" not in build_bounded_grammar(lark)
    matcher = compile_grammar(tokenizer, "ebnf", lark, JSON_OPTIONS)
    thought = f"<think>{'1' * 99}</think>" if thinking else ""
    mark = [
        tokenizer.tokenize_str(f"{thought}"),
        tokenizer.tokenize_bytes(b"<tool_call>", parse_special=True),
    ]
    for token in (*mark[0], *mark[1]):
        matcher.accept(token)
    opening = '\n{"name": "add", "arguments": {"a": 2.'
    said = written(matcher, tokenizer, opening + "5" * 99)
    assert said == opening + "5" * MAX_DIGITS
    assert written(matcher, tokenizer, "}}\n") == "}}\n"


def test_tokens_can_be_taken_back(tokenizer: LLTokenizer) -> None:
    matcher = compile_grammar(tokenizer, "json", json.dumps(NUMBER), JSON_OPTIONS)
    assert written(matcher, tokenizer, "1" * 99) == "1" * MAX_DIGITS
    matcher.rollback(1)
    assert written(matcher, tokenizer, "11") == "1"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"type": "integer", "multipleOf": 999999937, "minimum": 10**30, "maximum": 10**31},
        {"type": "integer", "multipleOf": 999999937},
        {"type": "string", "pattern": "(?=a)b"},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
    ],
    ids=str,
)
def test_what_no_answer_fits_is_found_by_its_first_mask(
    tokenizer: LLTokenizer, schema: Any
) -> None:
    with pytest.raises(GrammarError) as refused:
        check_grammar(tokenizer, "json", json.dumps(schema), JSON_OPTIONS)
    assert 0 < len(str(refused.value).splitlines()[0]) <= 200
    assert "<state>" not in str(refused.value)
