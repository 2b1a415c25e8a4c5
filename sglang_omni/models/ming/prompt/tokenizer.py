"""The thinker's tokenizer: a byte-level BPE read from the checkpoint's `tokenizer.json`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from sglang_omni.models.chat import TokenizedPrompt
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.prompt.chat import Prompt
from sglang_omni.models.ming.prompt.segments import PlaceholderRun, SpecialToken
from sglang_omni.protocol.errors import CheckpointError


class ThinkerTokenizer:
    """Encodes rendered chats and decodes answers. Safe to share between threads.

    Raises `CheckpointError` when `tokenizer.json` is absent or is not byte-level.
    """

    def __init__(self, checkpoint: Path) -> None:
        """Read `tokenizer.json` of the folder `checkpoint`."""
        path = checkpoint / "tokenizer.json"
        layout = _read_layout(path)
        self._path = path
        self._full = Tokenizer.from_str(json.dumps(layout))
        # Without its added tokens the same BPE cannot produce a control token from a message.
        self._plain = Tokenizer.from_str(json.dumps(layout | {"added_tokens": []}))
        added = layout["added_tokens"]
        self._added = {token["content"]: token["id"] for token in added}
        self._special = frozenset(token["id"] for token in added if token["special"])
        # What was asked for before: text has few different tokens, and they come by the thousand.
        self._bytes: dict[int, bytes] = {}

    def encode(self, prompt: Prompt) -> TokenizedPrompt:
        """Tokens of a rendered chat; nothing is added before or after."""
        ids: list[int] = []
        runs: list[tuple[int, int]] = []
        for piece in prompt.pieces:
            match piece:
                case SpecialToken(token):
                    ids.append(self.token_id(token))
                case PlaceholderRun(token, count):
                    runs.append((len(ids), len(ids) + count - 1))
                    ids += [self.token_id(token)] * count
                case _:
                    ids += self.encode_text(piece)
        return TokenizedPrompt(tuple(ids), tuple(runs))

    def encode_text(self, text: str) -> list[int]:
        """Token ids of ordinary text; strings that spell special tokens stay text."""
        # As a batch of one: only that releases the interpreter lock meanwhile.
        (encoding,) = self._plain.encode_batch_fast([text], add_special_tokens=False)
        return encoding.ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids` without special tokens; invalid UTF-8 becomes U+FFFD."""
        return self._full.decode(list(ids), skip_special_tokens=True)

    def token_id(self, token: str) -> int:
        """Id of an added token by its string. Raises `CheckpointError` when there is none."""
        if token not in self._added:
            raise CheckpointError(f"{self._path}: the added token {token!r} is missing")
        return self._added[token]

    def token_name(self, token_id: int) -> str:
        """How the tokenizer's file writes a token."""
        return self._full.id_to_token(token_id) or f"<{token_id}>"

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes a token adds to the text, perhaps a part of a character.

        Empty for special tokens and for ids the tokenizer does not use (padding rows).
        """
        known = self._bytes.get(token_id)
        if known is None:
            known = self._bytes[token_id] = self._read_bytes(token_id)
        return known

    def _read_bytes(self, token_id: int) -> bytes:
        token = None if token_id in self._special else self._full.id_to_token(token_id)
        if token is None:
            return b""
        try:
            return bytes(_BYTE_OF[char] for char in token)
        except KeyError:  # an added token: stored as text, not in the byte alphabet
            return token.encode()


def _read_layout(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise CheckpointError(
            f"{path} is missing: add the tokenizer.json of the released model to the folder"
        )
    layout = read_json(path)
    for key in ("model", "decoder", "added_tokens"):
        if key not in layout:
            raise CheckpointError(f"{path}: key {key!r} is missing")
    if layout["decoder"]["type"] != "ByteLevel":
        raise CheckpointError(f"{path}: the decoder must be ByteLevel")
    return layout


def _byte_alphabet() -> dict[str, int]:
    """Character to byte, as byte-level BPE writes bytes: printable Latin-1 stands for itself,
    every other byte for the next free code point from U+0100."""
    itself = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = [byte for byte in range(256) if byte not in itself]
    alphabet = {chr(byte): byte for byte in itself}
    alphabet.update({chr(0x100 + rank): byte for rank, byte in enumerate(shifted)})
    return alphabet


_BYTE_OF = _byte_alphabet()
