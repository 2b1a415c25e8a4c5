"""Plain-looking words that may start a reading which goes on after them, or stand inside one."""

from sglang_omni.normalization.en.name_words import NAME_WORDS
from sglang_omni.normalization.en.quantity_words import QUANTITY_WORDS

# In small letters. A text that is still arriving is not cut after one of them.
OPEN_WORDS: frozenset[str] = QUANTITY_WORDS | NAME_WORDS
