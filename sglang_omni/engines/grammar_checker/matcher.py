"""What llguidance makes of a grammar: which tokens may come next. The same in the process that
checks a grammar and in SGLang's scheduler, which then serves it."""

from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer, grammar_from
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
from numpy.typing import NDArray

from sglang_omni.engines.grammar_checker.bounds import BOUNDED_DOCUMENT, bounded_form
from sglang_omni.engines.grammar_checker.contract import GrammarKind

Mask = NDArray[np.int32]
"""Bits of tokens, [rows, words of 32]."""

_REASON_CHARACTERS = 200


class GrammarError(ValueError):
    """A grammar cannot be compiled, or nothing can follow. The message may quote the grammar."""


class BoundedMatcher:
    """How far one answer has come under its grammar and under the bounds beside it.

    Where the two contradict each other the grammar alone counts, since that is what was asked for.
    """

    def __init__(self, grammar: LLMatcher, bounds: LLMatcher | None, vocab_size: int) -> None:
        self._grammar, self._bounds = grammar, bounds
        self._scratch: Mask = allocate_token_bitmask(1, vocab_size)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing but the end can follow."""
        return bool(self._grammar.is_stopped())

    def fill(self, mask: Mask, row: int) -> None:
        """Set the bits of the tokens that may come next. Raises `GrammarError` if there is none."""
        fill_next_token_bitmask(self._grammar, mask, row)
        _check(self._grammar)
        if self._bounds is None:
            return
        fill_next_token_bitmask(self._bounds, self._scratch, 0)
        both = mask[row] & self._scratch[0]
        if self._bounds.is_error() or not both.any():
            self._bounds = None
        else:
            mask[row] = both

    def accept(self, token: int) -> None:
        """Go on by a token. Raises `GrammarError` for one that may not come."""
        self._grammar.consume_token(token)
        _check(self._grammar)
        if self._bounds is not None and not self._bounds.consume_token(token):
            self._bounds = None

    def rollback(self, tokens: int) -> None:
        """Take the last tokens back. Raises `GrammarError`."""
        self._grammar.rollback(tokens)
        _check(self._grammar)
        if self._bounds is not None and not self._bounds.rollback(tokens):
            self._bounds = None

    def copy(self) -> "BoundedMatcher":
        """Return another answer that has come as far."""
        bounds = None if self._bounds is None else self._bounds.deep_copy()
        vocab_size = self._scratch.shape[1] * 32
        return BoundedMatcher(self._grammar.deep_copy(), bounds, vocab_size)


def compile_grammar(
    tokenizer: LLTokenizer, kind: GrammarKind, text: str, json_options: Any
) -> BoundedMatcher:
    """Compile a JSON schema (`json`) or a Lark grammar (`ebnf`, as SGLang calls it).

    `json_options` are llguidance's, for the schema. Raises `GrammarError`.
    """
    try:
        if kind == "json":
            grammar = LLMatcher.grammar_from_json_schema(text, defaults=json_options)
            bounds = BOUNDED_DOCUMENT
        else:
            grammar, bounds = grammar_from("ebnf", text), bounded_form(text)
    except ValueError as error:
        raise GrammarError(_first_line(str(error))) from None
    matcher = LLMatcher(tokenizer, grammar, log_level=0)
    beside = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(bounds), log_level=0)
    for one in (matcher, beside):
        _check(one)
    return BoundedMatcher(matcher, beside, tokenizer.vocab_size)


def check_grammar(tokenizer: LLTokenizer, kind: GrammarKind, text: str, json_options: Any) -> None:
    """Compile a grammar and ask what its first token may be. Raises `GrammarError`."""
    mask = allocate_token_bitmask(1, tokenizer.vocab_size)
    compile_grammar(tokenizer, kind, text, json_options).fill(mask, 0)


def _check(matcher: LLMatcher) -> None:
    if not matcher.is_error():
        return
    reason = _first_line(matcher.get_error())
    if reason.startswith("NoExtension"):
        reason = "no answer fits it"
    raise GrammarError(reason)


def _first_line(text: str) -> str:
    """llguidance appends its state to what is wrong."""
    return next(iter(text.splitlines()), "")[:_REASON_CHARACTERS]
