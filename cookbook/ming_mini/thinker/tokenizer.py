"""The thinker's tokenizer: whole words that the tasks use often, and bytes for the rest.

There are no merges: a word is one token, or the bytes of its letters. So text that must be spelled,
read or transcribed letter by letter is tokenized letter by letter.
"""

from collections import Counter
from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.processors import ByteLevel as ByteLevelOffsets

from sglang_omni.models.ming.prompt.chat import DEFAULT_SYSTEM
from sglang_omni.models.ming.tiny.tokenizers import (
    THINKER_SPLIT,
    build_vocabulary,
    list_thinker_tokens,
)

WORDS = 380
MIN_BYTES = 2
"""The fewest bytes of a piece of text that gets a token."""
TEMPLATE = (f"{DEFAULT_SYSTEM}\n\ndetailed thinking off", "SYSTEM", "HUMAN", "ASSISTANT", " on")
"""Text of every prompt."""


def build_tokenizer(words: Iterable[str]) -> Tokenizer:
    """Build it of bytes, then `words` as they follow each other (" the"), then the added tokens."""
    split = _splitter()
    ids = build_vocabulary(())
    for word in words:
        for piece, _ in split.pre_tokenize_str(word):
            ids.setdefault(piece, len(ids))
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[], ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = ByteLevelOffsets(trim_offsets=False)
    for token in list_thinker_tokens():
        added = AddedToken(token.content, normalized=False, special=token.special)
        tokenizer.add_special_tokens([added])
    return tokenizer


def frequent_words(texts: Iterable[str], count: int = WORDS) -> list[str]:
    """Return the template's pieces, then those that save most tokens in `texts`."""
    split, decode = _splitter(), decoders.ByteLevel()
    found: Counter[str] = Counter()
    for text in texts:
        found.update(piece for piece, _ in split.pre_tokenize_str(text))
    template = [piece for text in TEMPLATE for piece, _ in split.pre_tokenize_str(text)]
    worth = {piece: times * (len(piece) - 1) for piece, times in found.items()}
    likely = sorted(worth, key=lambda piece: (-worth[piece], piece))
    kept = dict.fromkeys((*template, *(one for one in likely if len(one) >= MIN_BYTES)))
    return [decode.decode([piece]) for piece in list(kept)[:count]]


def _splitter() -> Sequence:
    """Return the released tokenizer's pre-tokenizer, in the byte alphabet."""
    pattern = Split(Regex(THINKER_SPLIT), "isolated")
    return Sequence([pattern, ByteLevel(add_prefix_space=False, use_regex=False)])
