"""The thinker's tokenizer: the byte-level BPE of the checkpoint's `tokenizer.json`."""

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

    Raises `CheckpointError` if `tokenizer.json` is missing or not byte-level.
    """

    def __init__(self, checkpoint: Path) -> None:
        """Read `tokenizer.json` of the folder `checkpoint`."""
        path = checkpoint / "tokenizer.json"
        layout = _read_layout(path)
        self._path = path
        self._full = Tokenizer.from_str(json.dumps(layout))
        # Without added tokens, the same BPE cannot produce a special token from a message.
        self._plain = Tokenizer.from_str(json.dumps(layout | {"added_tokens": []}))
        added = layout["added_tokens"]
        self._added = {token["content"]: token["id"] for token in added}
        self.vocabulary_size = 1 + max(*layout["model"]["vocab"].values(), *self._added.values())
        self._special = frozenset(token["id"] for token in added if token["special"])
        # Text repeats few distinct tokens very often.
        self._bytes_by_id: dict[int, bytes] = {}

    def encode(self, prompt: Prompt) -> TokenizedPrompt:
        """Encode a rendered chat; no token is added before or after."""
        ids: list[int] = []
        runs: list[tuple[int, int]] = []
        for segment in prompt.segments:
            match segment:
                case SpecialToken(token):
                    ids.append(self.token_id(token))
                case PlaceholderRun(token, count):
                    runs.append((len(ids), len(ids) + count - 1))
                    ids += [self.token_id(token)] * count
                case _:
                    ids += self.encode_text(segment)
        return TokenizedPrompt(tuple(ids), tuple(runs))

    def encode_text(self, text: str) -> list[int]:
        """Encode ordinary text; a string that spells a special token stays text."""
        # A batch of one, because only batches release the interpreter lock.
        (encoding,) = self._plain.encode_batch_fast([text], add_special_tokens=False)
        return encoding.ids

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """Encode text in which the name of a special token stands for it; no token is added."""
        (encoding,) = self._full.encode_batch_fast([text], add_special_tokens=False)
        return tuple(encoding.ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode `ids` without special tokens; invalid UTF-8 becomes U+FFFD."""
        return self._full.decode(list(ids), skip_special_tokens=True)

    def token_id(self, token: str) -> int:
        """Return the id of an added token. Raises `CheckpointError` if there is none."""
        if token not in self._added:
            raise CheckpointError(f"{self._path}: the added token {token!r} is missing")
        return self._added[token]

    def token_name(self, token_id: int) -> str:
        """Return a token as it is written in `tokenizer.json`."""
        return self._full.id_to_token(token_id) or f"<{token_id}>"

    def token_bytes(self, token_id: int) -> bytes:
        """Return the UTF-8 bytes that a token adds to the text, perhaps a part of a character.

        Empty for special tokens and for ids without a token (padding rows).
        """
        known = self._bytes_by_id.get(token_id)
        if known is None:
            known = self._bytes_by_id[token_id] = self._read_bytes(token_id)
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
    """Return the byte of each character of byte-level BPE.

    Printable Latin-1 represents itself; every other byte has the next free code point from U+0100.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(0x100 + rank): byte for rank, byte in enumerate(shifted)})
    return alphabet


_BYTE_OF = _byte_alphabet()
