"""What prefills replayed from CUDA graphs read, media included.

SGLang captures the layers of a prefill for so many tokens, with attention left out between two
graphs, and replays them for any batch that fits. A graph reads fixed addresses, and SGLang fills
only those that text needs: token ids, positions, places in the cache. Embeddings, which features of
pictures and sound are part of, and route ids lie here.
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
    """`embeds` [most tokens, hidden] and `routes` [most tokens]: a replay reads the first ones."""

    embeds: Tensor
    routes: Tensor

    def fill(self, embeds: Tensor, routes: Tensor | None) -> None:
        """Bring the tokens of the next replay; without `routes` all of them are text."""
        tokens = len(embeds)
        self.embeds[:tokens].copy_(embeds)
        if routes is None:
            self.routes[:tokens].fill_(TEXT)
        else:
            self.routes[:tokens].copy_(routes)

    def first(self, tokens: int) -> tuple[Tensor, Tensor]:
        """Embeddings and route ids of that many tokens, where graphs read them."""
        return self.embeds[:tokens], self.routes[:tokens]


def captured_inputs(hidden: int, device: torch.device) -> CapturedInputs | None:
    """Room for the largest prefill that SGLang is to capture; None if it captures none.

    Raises `StartupError` for graphs of another kind, which would give media the text router.
    """
    prefill = get_server_args().cuda_graph_config.prefill
    if prefill.backend == Backend.DISABLED:
        return None
    if prefill.backend != Backend.BREAKABLE:
        raise StartupError(f"prefill CUDA graphs must be breakable, not {prefill.backend}")
    tokens = max(prefill.bs)
    return CapturedInputs(
        torch.zeros(tokens, hidden, device=device, dtype=torch.get_default_dtype()),
        torch.full((tokens,), TEXT, device=device, dtype=torch.uint8),
    )
