"""Text of single tokens, and token ids that a client sends."""

from collections.abc import Callable, Sequence

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.protocol.errors import InvalidRequest

TokenText = Callable[[int], tuple[str, bytes]]
"""Returns a token's name and the bytes that it adds to a text."""


def check_token_ids(ids: Sequence[int], field: str, backend: Backend) -> None:
    """Raise `InvalidRequest`, naming the item of `field`, if an id is not that of a token."""
    size = backend.vocabulary_size
    if ids and min(ids) >= 0 and max(ids) < size:
        return
    for index, token_id in enumerate(ids):
        if not 0 <= token_id < size:
            path = f"{field}.{index}"
            raise InvalidRequest(f"{path}: must be from 0 to {size - 1}", param=path)


def decode_tokens(
    ids: Sequence[int], token_text: TokenText, *, skip_special_tokens: bool = False
) -> str:
    """Return the text of tokens; special tokens have their names, invalid UTF-8 becomes U+FFFD."""
    data = bytearray()
    for token_id in ids:
        name, token_bytes = token_text(token_id)
        data += token_bytes or (b"" if skip_special_tokens else name.encode())
    return data.decode("utf-8", errors="replace")
