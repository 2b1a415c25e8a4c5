"""The tiny thinker's weights: random, but it speaks readable sentences and comes to an end.

A random model over a byte-level vocabulary prints broken bytes for ever. A few channels of the
residual stream are therefore reserved: the embedding sets them, the layers neither read nor
write them, and the head, which has no bias, steers by them.

* `CONSTANT` is set for every token. Through it the head keeps bare bytes, word pieces, special
  tokens and unused rows silent.
* `ENGLISH` and `CHINESE` are set after a token of the language: an answer does not change it.
* `MARKED` is set after a punctuation mark and at the start: no mark follows.
* `STOPPED` is set after a full stop. There, and only there, `<|role_end|>` is likely.

So an answer sampled at temperature 1 is a few sentences long, some dozens of tokens, and a
greedy one is a sentence.
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
from sglang_omni.models.ming.tiny.draw import Draw, sane_tensors
from sglang_omni.models.ming.tiny.words import CHINESE, ENGLISH, Language

EMBEDDING = "model.model.word_embeddings.weight"
HEAD = "model.lm_head.weight"
START, END = "</role>", "<|role_end|>"
# Matrices that write to the residual stream, and those that read it.
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
# Value of a channel that is set: in the embedding, and about what the final norm leaves of it.
SET, SET_AFTER_NORM = 4.0, 2.5
# Attention with a few tokens in focus, and loud: greedy answers depend on the question, and
# rarely run in circles.
FOCUS, LOUDNESS = 3.0, 2.0

# Deviation of the logits among the words of a language.
WORD_STD = 1.3
# What is added to the logit of what must not be said.
MUTED = -24.0
# Deviation of a punctuation mark's own logit: small, but no two are ever equal.
MARK_STD = 0.15
# Shares of the probability, measured against the words, of one mark.
STOP_SHARE, PAUSE_SHARE = 0.02, 0.012
# The same for the end of the answer after a full stop. A greedy answer always ends there,
# because no single word is as likely.
END_SHARE = 0.5


@dataclass(frozen=True)
class Spoken:
    """Token ids of a language."""

    words: list[int]
    stops: list[int]
    pauses: list[int]

    @classmethod
    def of(cls, language: Language, tokenizer: Tokenizer) -> "Spoken":
        """Look the strings up; each is one token."""
        return cls(
            *(
                [tokenizer.encode(text, add_special_tokens=False).ids[0] for text in texts]
                for texts in (language.words, language.stops, language.pauses)
            )
        )

    @property
    def marks(self) -> list[int]:
        """All punctuation."""
        return self.stops + self.pauses

    def logit(self, share: float) -> float:
        """The logit of a token that is said `share` times as often as all words together.

        A normal logit of deviation s has the mean weight exp(s^2 / 2).
        """
        return math.log(share * len(self.words)) + WORD_STD**2 / 2


def thinker_weights(draw: Draw, config: Any, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """Every tensor of the thinker, float32, for the text configuration `config`."""
    tensors = sane_tensors(draw, list_thinker_tensors(config))
    for name, tensor in tensors.items():
        if name.endswith(WRITERS):
            tensor[RESERVED] = 0.0
        elif name.endswith(READERS):
            tensor[:, RESERVED] = 0.0
        if name.endswith("q_norm.weight"):
            tensor *= FOCUS
        elif name.endswith("attention.dense.weight"):
            tensor *= LOUDNESS
    english, chinese = (Spoken.of(language, tokenizer) for language in (ENGLISH, CHINESE))
    start, end = tokenizer.token_to_id(START), tokenizer.token_to_id(END)
    _steer_embedding(tensors[EMBEDDING], english, chinese, start)
    _steer_head(tensors[HEAD], english, chinese, end)
    return tensors


def _steer_embedding(table: Tensor, english: Spoken, chinese: Spoken, start: int) -> None:
    """Set the reserved channels of an embedding [vocab, hidden] in place."""
    table[:, RESERVED] = 0.0
    table[:, Channel.CONSTANT] = SET
    table[start, Channel.MARKED] = SET
    for language, channel in ((english, Channel.ENGLISH), (chinese, Channel.CHINESE)):
        table[language.words + language.marks, channel] = SET
        table[language.marks, Channel.MARKED] = SET
        table[language.stops, Channel.STOPPED] = SET


def _steer_head(head: Tensor, english: Spoken, chinese: Spoken, end: int) -> None:
    """Set how the head [vocab, hidden] reads the reserved channels, in place."""
    head *= WORD_STD
    head[english.marks + chinese.marks] *= MARK_STD / WORD_STD
    # No direction of its own: after every full stop the odds of the end are the same.
    head[end] = 0.0
    logits = torch.zeros(len(head), len(Channel))
    logits[:, Channel.CONSTANT] = MUTED
    for language, other in ((english, Channel.CHINESE), (chinese, Channel.ENGLISH)):
        logits[language.words, Channel.CONSTANT] = 0.0
        logits[language.words + language.marks, other] = MUTED
        logits[language.marks, Channel.MARKED] = MUTED
        logits[language.stops, Channel.CONSTANT] = language.logit(STOP_SHARE)
        logits[language.pauses, Channel.CONSTANT] = language.logit(PAUSE_SHARE)
    logits[end, Channel.STOPPED] = english.logit(END_SHARE) - MUTED
    logits[end, Channel.CHINESE] = chinese.logit(END_SHARE) - english.logit(END_SHARE)
    head[:, RESERVED] = logits / SET_AFTER_NORM
