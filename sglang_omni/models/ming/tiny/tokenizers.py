"""Byte-level BPE tokenizers of the real structure, over the words of `words.py`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as Steps
from tokenizers.processors import ByteLevel as ByteLevelOffsets

from sglang_omni.models.ming.tiny.words import CHINESE, ENGLISH

# The split patterns of the released tokenizers. The thinker's takes single digits and one line
# break at a time, with possessive quantifiers; the talker's is Qwen2's.
THINKER_SPLIT = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
TALKER_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

Pair = tuple[str, str]
Pieces = tuple[str, ...]


@dataclass(frozen=True)
class Special:
    """An added token. `special` ones vanish from decoded text."""

    content: str
    special: bool = True


def thinker_specials() -> Iterator[Special]:
    """The released thinker's added tokens, in the order of their ids (156891 to 157178)."""
    reserved = (f"<|reserved_token_{number}|>" for number in range(5, 256))
    for content in (
        *("<|startoftext|>", "<|endoftext|>", "[CLS]", "[gMASK]", "<|role_end|>"),
        *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        *reserved,
        *("<role>", "</role>"),
        *("<|arithmetic_end|>", "<|number_end|>", "<|arithmetic_start|>", "<|number_start|>"),
        *("<imagePatch>", "<image>", "</image>", "<video>", "</video>"),
        *("<gen_imagePatch>", "<gen_image>", "</gen_image>", "<imageHere>"),
        *("<end_of_chunk>", "<end_of_audio>", "<audioPatch>", "<audio>", "</audio>"),
        *("<gen_audioPatch>", "<gen_audio>", "</gen_audio>", "<audioHere>"),
        *("<framePatch>", "<text>", "<asr>", "<tts>"),
    ):
        yield Special(content)


def talker_specials() -> Iterator[Special]:
    """Qwen2's added tokens in their order, then the talker's audio tokens."""
    for content in (
        *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        *("<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>"),
        *("<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>"),
        *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
    ):
        yield Special(content)
    for content in (
        *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
        *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>"),
        *("<think>", "</think>"),
    ):
        yield Special(content, special=False)
    for content in ("<text_eos>", "<end_of_audio>", "<audioPatch>", "<audio>", "</audio>"):
        yield Special(content)


def build_thinker_tokenizer() -> Tokenizer:
    """The thinker's tokenizer: ids 0 to 255 are bytes, then merges, then the added tokens."""
    tokenizer = _byte_level_bpe(THINKER_SPLIT, thinker_specials())
    tokenizer.post_processor = ByteLevelOffsets(trim_offsets=False)
    return tokenizer


def build_talker_tokenizer() -> Tokenizer:
    """The talker's tokenizer, of Qwen2's structure."""
    return _byte_level_bpe(TALKER_SPLIT, talker_specials())


def vocabulary(merges: Iterable[Pair]) -> dict[str, int]:
    """Ids of the 256 bytes, in the byte alphabet's own order, and of what the merges make."""
    ids = {symbol: index for index, symbol in enumerate(sorted(ByteLevel.alphabet()))}
    for first, second in merges:
        ids.setdefault(first + second, len(ids))
    return ids


def learn_merges(words: Sequence[str], known: Sequence[Pair] = ()) -> list[Pair]:
    """Extend the merges `known` until every word is one token; most frequent pairs first.

    Later merges cannot undo a word: BPE always applies the earliest merge that fits, and the
    earlier ones alone already make the word whole.
    """
    merges = list(known)
    corpus = _split(words, merges)
    while counts := Counter(pair for pieces in corpus for pair in pairwise(pieces)):
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        corpus = [_merge(pieces, best) for pieces in corpus if len(pieces) > 1]
    return merges


def _split(words: Sequence[str], merges: list[Pair]) -> list[Pieces]:
    """The tokens of each word under `merges`."""
    alphabet = ByteLevel(add_prefix_space=False, use_regex=False)
    model = models.BPE(vocab=vocabulary(merges), merges=merges)
    symbols = [alphabet.pre_tokenize_str(word)[0][0] for word in words]
    return [tuple(token.value for token in model.tokenize(word)) for word in symbols]


def _merge(pieces: Pieces, pair: Pair) -> Pieces:
    """Join every occurrence of `pair`, from left to right."""
    joined: list[str] = []
    for piece in pieces:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece
        else:
            joined.append(piece)
    return tuple(joined)


@cache
def _spoken_merges() -> tuple[Pair, ...]:
    """Merges that make every word, and every Chinese character and mark, one token."""
    merges = learn_merges(ENGLISH.words)
    # Characters before words: a merge across their border would leave broken characters behind.
    characters = sorted({char for text in CHINESE.words + CHINESE.marks for char in text})
    return tuple(learn_merges(CHINESE.words, learn_merges(characters, merges)))


def _byte_level_bpe(split: str, specials: Iterable[Special]) -> Tokenizer:
    merges = _spoken_merges()
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary(merges), merges=list(merges)))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = Steps(
        [
            Split(Regex(split), "isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    for token in specials:
        added = AddedToken(token.content, normalized=False, special=token.special)
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([added])
    return tokenizer
