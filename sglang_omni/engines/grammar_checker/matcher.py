"""Compilation of grammars with llguidance, and matching of tokens.

The grammar checker process and SGLang's scheduler use the same code.
"""

from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer, grammar_from
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
from numpy.typing import NDArray

from sglang_omni.engines.grammar_checker.bounds import BOUNDED_DOCUMENT, build_bounded_grammar
from sglang_omni.engines.grammar_checker.contract import GrammarKind

Mask = NDArray[np.int32]
"""Token bit masks [rows, vocab_size / 32]."""

_REASON_CHARACTERS = 200


class GrammarError(ValueError):
    """A grammar cannot be compiled, or no token can follow. The message may quote the grammar."""


class BoundedMatcher:
    """The state of one answer in its grammar and in the bounding grammar.

    If the two contradict each other, only the requested grammar is used from then on.
    """

    def __init__(self, grammar: LLMatcher, bounds: LLMatcher | None, vocab_size: int) -> None:
        self._grammar, self._bounds = grammar, bounds
        self._bounds_mask: Mask = allocate_token_bitmask(1, vocab_size)

    @property
    def is_stopped(self) -> bool:
        """Return whether only the end of the answer can follow."""
        return bool(self._grammar.is_stopped())

    def fill(self, mask: Mask, row: int) -> None:
        """Write the mask of the next tokens to a row of `mask`.

        Raises:
            GrammarError: No token can follow.
        """
        fill_next_token_bitmask(self._grammar, mask, row)
        _raise_on_error(self._grammar)
        if self._bounds is None:
            return
        fill_next_token_bitmask(self._bounds, self._bounds_mask, 0)
        both = mask[row] & self._bounds_mask[0]
        if self._bounds.is_error() or not both.any():
            self._bounds = None
        else:
            mask[row] = both

    def accept(self, token: int) -> None:
        """Advance by a token.

        Raises:
            GrammarError: The grammar does not allow the token.
        """
        self._grammar.consume_token(token)
        _raise_on_error(self._grammar)
        if self._bounds is not None and not self._bounds.consume_token(token):
            self._bounds = None

    def rollback(self, num_tokens: int) -> None:
        """Undo the last tokens.

        Raises:
            GrammarError: The grammar cannot be rolled back.
        """
        self._grammar.rollback(num_tokens)
        _raise_on_error(self._grammar)
        if self._bounds is not None and not self._bounds.rollback(num_tokens):
            self._bounds = None

    def copy(self) -> "BoundedMatcher":
        """Return an independent copy in the same state."""
        bounds = None if self._bounds is None else self._bounds.deep_copy()
        vocab_size = self._bounds_mask.shape[1] * 32
        return BoundedMatcher(self._grammar.deep_copy(), bounds, vocab_size)


def compile_grammar(
    tokenizer: LLTokenizer, kind: GrammarKind, text: str, json_options: Any
) -> BoundedMatcher:
    """Compile a JSON schema (`json`) or a Lark grammar (`ebnf`, as SGLang calls it).

    `json_options` are llguidance's options for a schema.

    Raises:
        GrammarError: The grammar cannot be compiled.
    """
    try:
        if kind == "json":
            grammar = LLMatcher.grammar_from_json_schema(text, defaults=json_options)
            bounds = BOUNDED_DOCUMENT
        else:
            grammar, bounds = grammar_from("ebnf", text), build_bounded_grammar(text)
    except ValueError as error:
        raise GrammarError(_first_line(str(error))) from None
    matcher = LLMatcher(tokenizer, grammar, log_level=0)
    bounds_matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(bounds), log_level=0)
    _raise_on_error(matcher)
    _raise_on_error(bounds_matcher)
    return BoundedMatcher(matcher, bounds_matcher, tokenizer.vocab_size)


def check_grammar(tokenizer: LLTokenizer, kind: GrammarKind, text: str, json_options: Any) -> None:
    """Compile a grammar and compute the mask of its first token.

    Raises:
        GrammarError: The grammar cannot be compiled, or no answer can match it.
    """
    mask = allocate_token_bitmask(1, tokenizer.vocab_size)
    compile_grammar(tokenizer, kind, text, json_options).fill(mask, 0)


def _raise_on_error(matcher: LLMatcher) -> None:
    if not matcher.is_error():
        return
    reason = _first_line(matcher.get_error())
    if reason.startswith("NoExtension"):
        reason = "no answer can match it"
    raise GrammarError(reason)


def _first_line(text: str) -> str:
    """Return the first line of an error, because llguidance appends its state."""
    return next(iter(text.splitlines()), "")[:_REASON_CHARACTERS]
