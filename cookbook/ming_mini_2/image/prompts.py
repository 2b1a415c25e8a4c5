"""The prompts of drawing and editing, token for token as the server builds them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cookbook.ming_mini.thinker.dialogs import ChatMessage, TextRun
from cookbook.ming_mini_2.image.scenes import Size
from sglang_omni.models.chat import Item, PromptImage
from sglang_omni.models.ming.image.query_tokens import append_query_block
from sglang_omni.models.ming.media_rules import MERGE, PATCH, patch_grid, picture_tokens
from sglang_omni.models.ming.prompt.chat import render_chat
from sglang_omni.models.ming.prompt.positions import VisualBlock, compute_positions
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.routing import IMAGE, TEXT


@dataclass(frozen=True)
class PromptBuilder:
    """Builds prompts with a block of `num_queries` query tokens at their end."""

    tokenizer: ThinkerTokenizer
    num_queries: int

    def build(self, text: str, source: Size | None = None) -> tuple[int, ...]:
        """Return the tokens of a request; `source` is the size of a picture to edit."""
        content: list[Item] = [TextRun(text)]
        if source:
            content = [PromptImage(picture_tokens(patch_grid((1, *source, 3)))), *content]
        ids = self.tokenizer.encode(render_chat([ChatMessage("user", tuple(content))])).ids
        return append_query_block(ids, self.patch_token, self.num_queries).ids

    @property
    def patch_token(self) -> int:
        """Return the token that stands for a piece of a picture, and for a query token."""
        return self.tokenizer.token_id("<imagePatch>")

    def lay_out(self, ids: np.ndarray, source: Size | None) -> "PromptLayout":
        """Return where everything is in prompts [N, L] that are padded with zeros.

        The pictures that they edit have the size `source`.
        """
        visual = ids == self.patch_token
        places = np.nonzero(visual)[1].reshape(len(ids), -1)
        pictures, queries = places[:, : -self.num_queries], places[:, -self.num_queries :]
        # All prompts of one length have one table.
        firsts, numbers = np.unique(queries[:, 0], return_inverse=True)
        tables = [self._positions(ids.shape[1], first, source, pictures) for first in firsts]
        return PromptLayout(
            np.stack(tables).astype(np.int16)[numbers],
            np.where(visual, IMAGE, TEXT).astype(np.uint8),
            queries.astype(np.int16),
            pictures.astype(np.int16),
        )

    def _positions(
        self, length: int, query: int, source: Size | None, pictures: np.ndarray
    ) -> np.ndarray:
        """Return positions [3, length] of prompts whose first query token is at `query`.

        A picture to edit begins at the same place in all of them.
        """
        blocks = [VisualBlock(query, 1, 1, self.num_queries)]
        if source:
            rows, columns = (side // (PATCH * MERGE) for side in source)
            blocks.insert(0, VisualBlock(int(pictures[0, 0]), 1, rows, columns))
        return compute_positions(length, blocks)[0]


@dataclass(frozen=True)
class PromptLayout:
    """Where everything is in N prompts of at most L tokens.

    `positions` int16 [N, 3, L] and `routes` uint8 [N, L] are the thinker's. `queries` int16
    [N, queries] are the places of the query tokens, `pictures` int16 [N, tokens] those of a picture
    to edit.
    """

    positions: np.ndarray
    routes: np.ndarray
    queries: np.ndarray
    pictures: np.ndarray


def open_prompts(layout: Path, num_queries: int) -> PromptBuilder:
    """Return the builder of a checkpoint's prompts. Raises `CheckpointError`."""
    return PromptBuilder(ThinkerTokenizer(layout), num_queries)
