"""Byte-level BPE tokenizers with the released structure, over the words of `words.py`."""

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

# The split patterns of the released tokenizers. The thinker's splits single digits and single line
# breaks, with possessive quantifiers; the talker's is Qwen2's.
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
class AddedTokenSpec:
    """An added token. Decoded text does not contain `special` ones."""

    content: str
    special: bool = True


def list_thinker_tokens() -> Iterator[AddedTokenSpec]:
    """Yield the added tokens of the released thinker in id order (156891 to 157178)."""
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
        yield AddedTokenSpec(content)


def list_talker_tokens() -> Iterator[AddedTokenSpec]:
    """Yield Qwen2's added tokens in id order, then the talker's audio tokens."""
    for content in (
        *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        *("<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>"),
        *("<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>"),
        *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
    ):
        yield AddedTokenSpec(content)
    for content in (
        *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
        *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>"),
        *("<think>", "</think>"),
    ):
        yield AddedTokenSpec(content, special=False)
    for content in ("<text_eos>", "<end_of_audio>", "<audioPatch>", "<audio>", "</audio>"):
        yield AddedTokenSpec(content)


def build_thinker_tokenizer() -> Tokenizer:
    """Build the thinker's tokenizer: ids 0 to 255 are bytes, then merges, then added tokens."""
    tokenizer = _build_byte_level_bpe(THINKER_SPLIT, list_thinker_tokens())
    tokenizer.post_processor = ByteLevelOffsets(trim_offsets=False)
    return tokenizer


def build_talker_tokenizer() -> Tokenizer:
    """Build the talker's tokenizer, with Qwen2's structure."""
    return _build_byte_level_bpe(TALKER_SPLIT, list_talker_tokens())


def build_vocabulary(merges: Iterable[Pair]) -> dict[str, int]:
    """Return ids of the 256 bytes, in the order of the byte alphabet, then of the merged tokens."""
    ids = {symbol: index for index, symbol in enumerate(sorted(ByteLevel.alphabet()))}
    for first, second in merges:
        ids.setdefault(first + second, len(ids))
    return ids


def learn_merges(words: Sequence[str], known: Sequence[Pair] = ()) -> list[Pair]:
    """Extend the merges `known` until every word is one token; most frequent pairs first.

    Later merges cannot split a word again: BPE always applies the earliest merge that fits, and the
    earlier ones alone already complete the word.
    """
    merges = list(known)
    corpus = _tokenize_words(words, merges)
    while counts := Counter(pair for pieces in corpus for pair in pairwise(pieces)):
        top_pair = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(top_pair)
        corpus = [_apply_merge(pieces, top_pair) for pieces in corpus if len(pieces) > 1]
    return merges


def _tokenize_words(words: Sequence[str], merges: list[Pair]) -> list[Pieces]:
    """Return the tokens of each word under `merges`."""
    alphabet = ByteLevel(add_prefix_space=False, use_regex=False)
    model = models.BPE(vocab=build_vocabulary(merges), merges=merges)
    symbols = [alphabet.pre_tokenize_str(word)[0][0] for word in words]
    return [tuple(token.value for token in model.tokenize(word)) for word in symbols]


def _apply_merge(pieces: Pieces, pair: Pair) -> Pieces:
    """Join every occurrence of `pair`, from left to right."""
    joined: list[str] = []
    for piece in pieces:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece
        else:
            joined.append(piece)
    return tuple(joined)


@cache
def _learn_all_merges() -> tuple[Pair, ...]:
    """Return merges that make every word, Chinese character and mark one token."""
    merges = learn_merges(ENGLISH.words)
    # Characters before words: merges across character boundaries would leave broken characters.
    characters = sorted({char for text in CHINESE.words + CHINESE.marks for char in text})
    return tuple(learn_merges(CHINESE.words, learn_merges(characters, merges)))


def _build_byte_level_bpe(split: str, specials: Iterable[AddedTokenSpec]) -> Tokenizer:
    merges = _learn_all_merges()
    tokenizer = Tokenizer(models.BPE(vocab=build_vocabulary(merges), merges=list(merges)))
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
