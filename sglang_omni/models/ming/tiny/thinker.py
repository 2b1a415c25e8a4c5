"""Weights of the tiny thinker: random, but it writes readable sentences and ends its answers.

A random model over a byte-level vocabulary would print broken bytes forever. So a few channels of
the residual stream are reserved: the embedding sets them, the layers neither read nor write them,
and the head, which has no bias, uses them to control the output.

* `CONSTANT` is set for every token. With it the head suppresses bare bytes, word pieces, special
  tokens and unused rows.
* `ENGLISH` and `CHINESE` are set after a token of the language, so that an answer keeps it.
* `MARKED` is set after a punctuation mark and at the start: no mark follows.
* `STOPPED` is set after a full stop. Only there is `<|role_end|>` likely.

So an answer sampled at temperature 1 has a few sentences, some dozens of tokens; a greedy answer
is one sentence.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from sglang_omni.models.ming.thinker.routing import ROUTERS
from sglang_omni.models.ming.thinker.tensors import list_thinker_tensors
from sglang_omni.models.ming.tiny.draw import WeightSampler, sample_tensors
from sglang_omni.models.ming.tiny.words import CHINESE, ENGLISH, Language

EMBEDDING = "model.model.word_embeddings.weight"
HEAD = "model.lm_head.weight"
START, END = "</role>", "<|role_end|>"
# Matrices that write to the residual stream, and matrices that read it.
WRITERS = ("attention.dense.weight", "down_proj.weight")
READERS = (
    "query_key_value.weight",
    "gate_proj.weight",
    "up_proj.weight",
    *(f"{router}.weight" for router in ROUTERS),
)


class Channel(IntEnum):
    """Reserved channels of the residual stream."""

    CONSTANT = 0
    ENGLISH = 1
    CHINESE = 2
    MARKED = 3
    STOPPED = 4


RESERVED = list(Channel)
# Value of a set channel: in the embedding, and approximately after the final norm.
SET_VALUE, SET_VALUE_AFTER_NORM = 4.0, 2.5
# Attention that focuses on few tokens and has a large output: greedy answers depend on the
# question and rarely repeat.
QUERY_GAIN, ATTENTION_GAIN = 3.0, 2.0

# Standard deviation of the logits of the words of a language.
WORD_STD = 1.3
# Added to the logits of suppressed tokens.
SUPPRESSED_LOGIT = -24.0
# Standard deviation of the logits of punctuation marks: small, but no two are equal.
MARK_STD = 0.15
# Probability of one mark, relative to all words.
STOP_SHARE, PAUSE_SHARE = 0.02, 0.012
# Probability of the end of the answer after a full stop, relative to all words. A greedy answer
# always ends there, because no single word is as likely.
END_SHARE = 0.5


@dataclass(frozen=True)
class LanguageTokens:
    """Token ids of a language."""

    words: list[int]
    stops: list[int]
    pauses: list[int]

    @classmethod
    def from_language(cls, language: Language, tokenizer: Tokenizer) -> "LanguageTokens":
        """Look up the strings of a language; each is one token."""
        return cls(
            *(
                [tokenizer.encode(text, add_special_tokens=False).ids[0] for text in texts]
                for texts in (language.words, language.stops, language.pauses)
            )
        )

    @property
    def marks(self) -> list[int]:
        """Return all punctuation."""
        return self.stops + self.pauses

    def compute_logit(self, share: float) -> float:
        """Return the logit of a token that is `share` times as likely as all words together.

        A normal logit with standard deviation s has the mean weight exp(s^2 / 2).
        """
        return math.log(share * len(self.words)) + WORD_STD**2 / 2


def sample_thinker_weights(
    sampler: WeightSampler, config: Any, tokenizer: Tokenizer
) -> dict[str, Tensor]:
    """Return all float32 tensors of the thinker, for the text configuration `config`."""
    tensors = sample_tensors(sampler, list_thinker_tensors(config))
    for name, tensor in tensors.items():
        if name.endswith(WRITERS):
            tensor[RESERVED] = 0.0
        elif name.endswith(READERS):
            tensor[:, RESERVED] = 0.0
        if name.endswith("q_norm.weight"):
            tensor *= QUERY_GAIN
        elif name.endswith("attention.dense.weight"):
            tensor *= ATTENTION_GAIN
    english, chinese = (
        LanguageTokens.from_language(language, tokenizer) for language in (ENGLISH, CHINESE)
    )
    start, end = tokenizer.token_to_id(START), tokenizer.token_to_id(END)
    _steer_embedding(tensors[EMBEDDING], english, chinese, start)
    _steer_head(tensors[HEAD], english, chinese, end)
    return tensors


def _steer_embedding(
    table: Tensor, english: LanguageTokens, chinese: LanguageTokens, start: int
) -> None:
    """Set the reserved channels of an embedding [vocab, hidden] in place."""
    table[:, RESERVED] = 0.0
    table[:, Channel.CONSTANT] = SET_VALUE
    table[start, Channel.MARKED] = SET_VALUE
    for language, channel in ((english, Channel.ENGLISH), (chinese, Channel.CHINESE)):
        table[language.words + language.marks, channel] = SET_VALUE
        table[language.marks, Channel.MARKED] = SET_VALUE
        table[language.stops, Channel.STOPPED] = SET_VALUE


def _steer_head(head: Tensor, english: LanguageTokens, chinese: LanguageTokens, end: int) -> None:
    """Set in place how the head [vocab, hidden] reads the reserved channels."""
    head *= WORD_STD
    head[english.marks + chinese.marks] *= MARK_STD / WORD_STD
    # No random direction: the end is equally likely after every full stop.
    head[end] = 0.0
    logits = torch.zeros(len(head), len(Channel))
    logits[:, Channel.CONSTANT] = SUPPRESSED_LOGIT
    for language, other_channel in ((english, Channel.CHINESE), (chinese, Channel.ENGLISH)):
        logits[language.words, Channel.CONSTANT] = 0.0
        logits[language.words + language.marks, other_channel] = SUPPRESSED_LOGIT
        logits[language.marks, Channel.MARKED] = SUPPRESSED_LOGIT
        logits[language.stops, Channel.CONSTANT] = language.compute_logit(STOP_SHARE)
        logits[language.pauses, Channel.CONSTANT] = language.compute_logit(PAUSE_SHARE)
    logits[end, Channel.STOPPED] = english.compute_logit(END_SHARE) - SUPPRESSED_LOGIT
    logits[end, Channel.CHINESE] = chinese.compute_logit(END_SHARE) - english.compute_logit(
        END_SHARE
    )
    head[:, RESERVED] = logits / SET_VALUE_AFTER_NORM
