"""The model family that the suites run on, and its parts.

`$SGLANG_OMNI_TEST_FAMILY` chooses it: a name of `FAMILIES`, or `module:function` of a function that
takes an empty folder and returns a `FamilyUnderTest`. Without it the suites run on Ming.
"""

import json
import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from sglang_omni.models.registry import family_of
from sglang_omni.protocol.tools import ToolCall
from tests.testing.family_under_test import FAMILIES, VARIABLE

NAME = os.environ.get(VARIABLE, "ming")


class Tokens:
    """The tokens of a checkpoint: ids of a text by its `tokenizer.json`, bytes by its family."""

    def __init__(self, checkpoint: Path) -> None:
        layout = json.loads((checkpoint / "tokenizer.json").read_text(encoding="utf-8"))
        self._full = Tokenizer.from_str(json.dumps(layout))
        # Without added tokens, a text that spells a special token stays text.
        self._plain = Tokenizer.from_str(json.dumps(layout | {"added_tokens": []}))
        self.token_bytes = CHAT.token_bytes
        self.num_ordinary = self._plain.get_vocab_size()
        """How many tokens are not special; their ids come first."""
        self.special = tuple(token["id"] for token in layout["added_tokens"] if token["special"])

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of ordinary text."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return ids

    def encode_answer(self, text: str) -> list[int]:
        """Return the ids of an answer, in which the names of special tokens stand for them."""
        ids: list[int] = self._full.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text without special tokens; invalid UTF-8 becomes U+FFFD."""
        text: str = self._full.decode(list(ids), skip_special_tokens=True)
        return text


# Kept as long as the tests run.
FOLDER = tempfile.TemporaryDirectory(prefix="sglang-omni-family-")
UNDER_TEST = EntryPoint(NAME, FAMILIES.get(NAME, NAME), VARIABLE).load()(Path(FOLDER.name))
CHECKPOINT: Path = UNDER_TEST.checkpoint
FAMILY = family_of(CHECKPOINT)
CAPABILITIES = FAMILY.capabilities(CHECKPOINT)
CHAT = FAMILY.chat_format(CHECKPOINT)
MEDIA_FORMAT, SPEECH_TEXT = FAMILY.media_format, FAMILY.speech_text
TOKENS = Tokens(CHECKPOINT)
_INFO = FAMILY.load_speech_model(CHECKPOINT, "cpu", "float32").info
RATE, FRAME_S, VOICES = _INFO.sample_rate, _INFO.frame_s, _INFO.voices


def split_fragments(text: str) -> list[str]:
    """Return what the talker is asked to speak of a text."""
    return [*SPEECH_TEXT.open_front_end().split_fragments(text)]


def write_call(name: str, arguments: str) -> str:
    """Return how the model writes a call; skip the test of a model that calls no functions."""
    if UNDER_TEST.write_call is None:
        pytest.skip(f"{CAPABILITIES.name} calls no functions")
    text: str = UNDER_TEST.write_call(ToolCall(name, arguments))
    return text
