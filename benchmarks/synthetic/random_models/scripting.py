"""A scripted answer: after a real forward pass the script's next token is made the likeliest."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Beyond any logit, and within any sampling: the softmax leaves nothing for the others.
CERTAIN = 1e4


class Script(nn.Module):
    """Which token follows which: the script's next, or, after any other token, its first."""

    follower: Tensor

    def __init__(self, ids: Sequence[int], vocabulary: int, device: torch.device) -> None:
        """`ids` are all different."""
        super().__init__()
        self.first = ids[0]
        follower = torch.full((vocabulary,), ids[0], dtype=torch.int64)
        follower[list(ids[:-1])] = torch.tensor(ids[1:])
        self.register_buffer("follower", follower.to(device), persistent=False)

    def forward(self, logits: Tensor, last_ids: Tensor | None) -> None:
        """Mark, in logits [rows, vocabulary], what follows `last_ids` [rows], in place; None for
        prompts, of which every answer is the beginning. It runs inside CUDA graphs."""
        if last_ids is None:
            logits[:, self.first] = CERTAIN
        else:
            logits.scatter_(1, self.follower[last_ids][:, None], CERTAIN)
