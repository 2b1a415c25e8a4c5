"""The block of query tokens at the end of a prompt that asks for an image. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class QueryPrompt:
    """A prompt with its query block.

    Attributes:
        ids: Token ids. The block is one tag, the query tokens, and the closing tag.
        run: The inclusive run (first, last) of the query tokens.
        grid: Their patch grid (t, h, w), which gives them positions in one row.
    """

    ids: tuple[int, ...]
    run: tuple[int, int]
    grid: tuple[int, int, int]


def append_query_block(ids: Sequence[int], patch_token: int, num_queries: int) -> QueryPrompt:
    """Append the query block to a rendered prompt.

    As in the released model, the tags are the two ids after that of the image patch.
    """
    block = (patch_token + 1, *[patch_token] * num_queries, patch_token + 2)
    first = len(ids) + 1
    return QueryPrompt((*ids, *block), (first, first + num_queries - 1), (1, 2, 2 * num_queries))
