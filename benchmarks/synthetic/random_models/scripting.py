"""A scripted answer: after a real forward pass the script's next token is made the most likely."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Larger than any logit: the softmax leaves no probability for other tokens.
CERTAIN = 1e4


class ScriptedAnswer(nn.Module):
    """The token that follows each token: the script's next, or its first after any other token."""

    follower: Tensor

    def __init__(self, ids: Sequence[int], vocabulary: int, device: torch.device) -> None:
        """Build the table. `ids` must all be different."""
        super().__init__()
        self.first = ids[0]
        follower = torch.full((vocabulary,), ids[0], dtype=torch.int64)
        follower[list(ids[:-1])] = torch.tensor(ids[1:])
        self.register_buffer("follower", follower.to(device), persistent=False)

    def forward(self, logits: Tensor, last_ids: Tensor | None) -> None:
        """Change logits [rows, vocabulary] in place to choose the script's next token.

        It is the token after `last_ids` [rows]. `last_ids` None stands for prompts, whose answers
        start the script. It runs inside CUDA graphs.
        """
        if last_ids is None:
            logits[:, self.first] = CERTAIN
        else:
            logits.scatter_(1, self.follower[last_ids][:, None], CERTAIN)
