"""llguidance in SGLang's scheduler, guarded: a grammar that fails ends its own request only.

SGLang's own back end raises while it fills the mask of a step, which ends the scheduler, and writes
grammars that it cannot compile into the log. This one is registered beside it, by SGLang's registry
of grammar back ends. Only the thinker's processes may import this module, since it imports sglang.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from llguidance import LLTokenizer
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarObject,
    InvalidGrammarObject,
    register_grammar_backend,
)
from sglang.srt.constrained.llguidance_backend import GuidanceBackend, GuidanceGrammar

from sglang_omni.engines.grammar_checker.contract import GrammarKind
from sglang_omni.engines.grammar_checker.matcher import BoundedMatcher, compile_grammar
from sglang_omni.engines.thinker.launch import GRAMMAR_BACKEND

LOGGER = logging.getLogger(__name__)

# Neither may quote the grammar, which is a user's: SGLang logs them.
NOT_COMPILED = "the grammar of the answer cannot be compiled"
FAILED = "the grammar failed while the answer was written"
# Compiled grammars that are kept for the next request with the same.
MOST_GRAMMARS = 256
# What the library fails by, a panic among them, which is no `Exception`.
_PASSED_ON = (KeyboardInterrupt, SystemExit)


class GuardedGrammar(GuidanceGrammar):
    """One answer's grammar. Once it has failed any token may come, and the first that does is
    refused, at which SGLang aborts the request."""

    def __init__(self, tokenizer: LLTokenizer, matcher: BoundedMatcher) -> None:
        BaseGrammarObject.__init__(self)
        self.llguidance_tokenizer = tokenizer
        self.eos_token = tokenizer.eos_token
        self._matcher = matcher
        self._has_failed = False

    def accept_token(self, token: int) -> None:
        """Go on by a token. Raises `ValueError` for one that may not come."""
        if self.is_terminated():
            return
        if not self._has_failed and self._matcher.is_stopped and token == self.eos_token:
            self.finished = True
            return
        self._guard(lambda: self._matcher.accept(token))
        if self._has_failed:
            raise ValueError(FAILED)

    def rollback(self, num_tokens: int) -> None:
        """Take the last tokens back; the end of the answer is not one of the matcher's."""
        if num_tokens <= 0:
            return
        if self.is_terminated():
            self.finished = False
            num_tokens -= 1
        self._guard(lambda: self._matcher.rollback(num_tokens))

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write which tokens may come next into row `idx` of int32 [batch, words of 32]."""
        mask: np.ndarray = vocab_mask.numpy()
        self._guard(lambda: self._matcher.fill(mask, idx))
        if self._has_failed:
            vocab_mask[idx].fill_(-1)

    def copy(self) -> "GuardedGrammar":
        """Return the grammar for another request."""
        return GuardedGrammar(self.llguidance_tokenizer, self._matcher.copy())

    def try_jump_forward(self, tokenizer: Any) -> None:
        """Every token is chosen by the model."""
        return

    def _guard(self, work: Callable[[], None]) -> None:
        """Do `work`, unless the grammar has failed; note if it fails now."""
        if self._has_failed:
            return
        try:
            work()
        except _PASSED_ON:
            raise
        except BaseException as error:
            self._has_failed = True
            LOGGER.warning("a grammar failed (%s); its request ends", type(error).__name__)


class GuardedBackend(GuidanceBackend):
    """Compiles grammars for one scheduler."""

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Compile a JSON schema."""
        return self._compile("json", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Compile a grammar in Lark."""
        return self._compile("ebnf", key_string)

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Keep a grammar, in place of the oldest one where there are too many."""
        while len(self.cache) >= MOST_GRAMMARS:
            del self.cache[next(iter(self.cache))]
        super().set_cache(key, value)

    def _compile(self, kind: GrammarKind, text: str) -> BaseGrammarObject:
        options = {
            "whitespace_flexible": self.any_whitespace,
            "whitespace_pattern": self.whitespace_pattern,
        }
        try:
            matcher = compile_grammar(self.llguidance_tokenizer, kind, text, options)
        except _PASSED_ON:
            raise
        except BaseException as error:
            LOGGER.warning("%s (%s)", NOT_COMPILED, type(error).__name__)
            return InvalidGrammarObject(NOT_COMPILED)
        return GuardedGrammar(self.llguidance_tokenizer, matcher)


def register_backend() -> None:
    """Let `grammar_backend` name it."""
    register_grammar_backend(GRAMMAR_BACKEND, _open_backend)


def _open_backend(server_args: Any, tokenizer: Any, *_: Any) -> GuardedBackend:
    return GuardedBackend(
        tokenizer,
        any_whitespace=not server_args.constrained_json_disable_any_whitespace,
        whitespace_pattern=server_args.constrained_json_whitespace_pattern,
    )
