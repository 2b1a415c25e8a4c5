"""A grammar backend for SGLang's scheduler, based on llguidance, that isolates failures.

SGLang's own backend raises while it fills the mask of a step, which ends the scheduler, and it logs
grammars that it cannot compile. With this one, a grammar that fails ends its own request only. It
is registered through SGLang's registry of grammar backends. This module imports sglang, so only the
thinker's processes may import it.
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

# SGLang logs these messages, so they must not quote the user's grammar.
NOT_COMPILED = "the grammar of the answer cannot be compiled"
FAILED = "the grammar failed while the answer was generated"
# Compiled grammars that are cached for later requests.
MAX_CACHED_GRAMMARS = 256
# Not failures of the library. Its own include panics, which derive from `BaseException`.
_RERAISED = (KeyboardInterrupt, SystemExit)


class GuardedGrammar(GuidanceGrammar):
    """The grammar of one answer.

    Once it has failed, its mask allows every token, and the next token is rejected. SGLang then
    aborts the request.
    """

    def __init__(self, tokenizer: LLTokenizer, matcher: BoundedMatcher) -> None:
        BaseGrammarObject.__init__(self)
        self.llguidance_tokenizer = tokenizer
        self.eos_token = tokenizer.eos_token
        self._matcher = matcher
        self._has_failed = False

    def accept_token(self, token: int) -> None:
        """Advance by a token.

        Raises:
            ValueError: The grammar does not allow the token, or has failed.
        """
        if self.is_terminated():
            return
        if not self._has_failed and self._matcher.is_stopped and token == self.eos_token:
            self.finished = True
            return
        self._run_guarded(lambda: self._matcher.accept(token))
        if self._has_failed:
            raise ValueError(FAILED)

    def rollback(self, num_tokens: int) -> None:
        """Undo the last tokens. The end-of-sequence token is not one of the matcher's."""
        if num_tokens <= 0:
            return
        if self.is_terminated():
            self.finished = False
            num_tokens -= 1
        self._run_guarded(lambda: self._matcher.rollback(num_tokens))

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask of allowed tokens to row `idx` of int32 [batch, vocab_size / 32]."""
        mask: np.ndarray = vocab_mask.numpy()
        self._run_guarded(lambda: self._matcher.fill(mask, idx))
        if self._has_failed:
            vocab_mask[idx].fill_(-1)

    def copy(self) -> "GuardedGrammar":
        """Return a copy for another request."""
        return GuardedGrammar(self.llguidance_tokenizer, self._matcher.copy())

    def try_jump_forward(self, tokenizer: Any) -> None:
        """Return None: jump-forward decoding is not supported."""
        return

    def _run_guarded(self, operation: Callable[[], None]) -> None:
        """Run `operation` unless the grammar has failed, and record a failure."""
        if self._has_failed:
            return
        try:
            operation()
        except _RERAISED:
            raise
        except BaseException as error:
            self._has_failed = True
            LOGGER.warning("a grammar failed (%s); aborting its request", type(error).__name__)


class GuardedBackend(GuidanceBackend):
    """Compiles grammars for one scheduler."""

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Compile a JSON schema."""
        return self._compile("json", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Compile a grammar in Lark syntax."""
        return self._compile("ebnf", key_string)

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Cache a grammar, and evict the oldest one if the cache is full."""
        while len(self.cache) >= MAX_CACHED_GRAMMARS:
            del self.cache[next(iter(self.cache))]
        super().set_cache(key, value)

    def _compile(self, kind: GrammarKind, text: str) -> BaseGrammarObject:
        options = {
            "whitespace_flexible": self.any_whitespace,
            "whitespace_pattern": self.whitespace_pattern,
        }
        try:
            matcher = compile_grammar(self.llguidance_tokenizer, kind, text, options)
        except _RERAISED:
            raise
        except BaseException as error:
            LOGGER.warning("%s (%s)", NOT_COMPILED, type(error).__name__)
            return InvalidGrammarObject(NOT_COMPILED)
        return GuardedGrammar(self.llguidance_tokenizer, matcher)


def register_backend() -> None:
    """Register the backend, so that SGLang's argument `grammar_backend` can name it."""
    register_grammar_backend(GRAMMAR_BACKEND, _open_backend)


def _open_backend(server_args: Any, tokenizer: Any, *_: Any) -> GuardedBackend:
    return GuardedBackend(
        tokenizer,
        any_whitespace=not server_args.constrained_json_disable_any_whitespace,
        whitespace_pattern=server_args.constrained_json_whitespace_pattern,
    )
