"""The talker's tokenizer: Qwen2's file format, one token per character.

A small model learns the sounds of letters from few hours of speech only if every letter occurs
often. The prompt's fixed lines are one token each, so that they cost no time.
"""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

from sglang_omni.models.ming.speech.prompt import SPEECH_TASK, TEXT_INPUT
from sglang_omni.models.ming.tiny.tokenizers import (
    TALKER_SPLIT,
    build_vocabulary,
    list_talker_tokens,
)

# Text for the talker has no line breaks, so none of these occurs in it.
FIXED_LINES = (
    "system\nYou are a helpful assistant.",
    "user\n",
    "assistant\n",
    SPEECH_TASK,
    TEXT_INPUT,
)


def build_tokenizer() -> Tokenizer:
    """Build the tokenizer: bytes without merges, over lower-case text.

    It has the added tokens of Qwen2 and of the talker.
    """
    tokenizer = Tokenizer(models.BPE(vocab=build_vocabulary(()), merges=[]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = Sequence(
        [
            Split(Regex(TALKER_SPLIT), "isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    for token in list_talker_tokens():
        added = AddedToken(token.content, normalized=False, special=token.special)
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([added])
    tokenizer.add_tokens([AddedToken(line, normalized=False) for line in FIXED_LINES])
    return tokenizer
