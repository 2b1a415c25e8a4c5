"""Inputs of prefills that are replayed from CUDA graphs, media included.

SGLang captures the layers of a prefill for fixed token counts, with attention outside the graphs,
and replays them for any batch that fits. A graph reads fixed addresses, and SGLang fills only the
inputs that text needs: token ids, positions, cache locations. The buffers here hold the others:
embeddings, which include the features of images and audio, and route ids.
"""

from dataclasses import dataclass

import torch
from sglang.srt.model_executor.cuda_graph_config import Backend
from sglang.srt.runtime_context import get_server_args
from torch import Tensor

from sglang_omni.models.ming.thinker.routing import TEXT
from sglang_omni.protocol.errors import StartupError


@dataclass(frozen=True)
class CapturedInputs:
    """Input buffers of the graphs: `embeds` [max tokens, hidden] and `routes` [max tokens].

    A replay reads the first rows.
    """

    embeds: Tensor
    routes: Tensor

    def fill(self, embeds: Tensor, routes: Tensor | None) -> None:
        """Copy the tokens of the next replay; without `routes` all of them are text."""
        tokens = len(embeds)
        self.embeds[:tokens].copy_(embeds)
        if routes is None:
            self.routes[:tokens].fill_(TEXT)
        else:
            self.routes[:tokens].copy_(routes)

    def select_first(self, tokens: int) -> tuple[Tensor, Tensor]:
        """Return views of the first `tokens` embeddings and route ids."""
        return self.embeds[:tokens], self.routes[:tokens]


def allocate_captured_inputs(hidden: int, device: torch.device) -> CapturedInputs | None:
    """Allocate buffers for the largest prefill that SGLang captures; None if it captures none.

    Raises:
        StartupError: The graphs are of another kind, with which media would use the text router.
    """
    prefill = get_server_args().cuda_graph_config.prefill
    if prefill.backend == Backend.DISABLED:
        return None
    if prefill.backend != Backend.BREAKABLE:
        raise StartupError(
            f"prefill CUDA graphs must use the breakable backend, not {prefill.backend}"
        )
    tokens = max(prefill.bs)
    return CapturedInputs(
        torch.zeros(tokens, hidden, device=device, dtype=torch.get_default_dtype()),
        torch.full((tokens,), TEXT, device=device, dtype=torch.uint8),
    )
