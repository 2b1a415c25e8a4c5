"""The connector: from the thinker's states at the query tokens to condition rows."""

import torch.nn.functional as F
from torch import Tensor, arange, nn

from sglang_omni.models.ming.config import Qwen2Config
from sglang_omni.models.ming.image.config import ImageHeadConfig
from sglang_omni.models.ming.speech.qwen2 import Qwen2Stack

MIN_NORM = 1e-12


class BidirectionalContext:
    """Attention of every position to every position of one pass."""

    def __init__(self, stack: Qwen2Stack, x: Tensor) -> None:
        positions = arange(x.shape[1], device=x.device)
        self.cos, self.sin = stack.compute_tables(positions[None], x.dtype)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend without a mask; see `AttentionContext.attend`."""
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


class Connector(nn.Module):
    """A projection, a bidirectional Qwen2 stack, and another projection."""

    def __init__(self, head: ImageHeadConfig, config: Qwen2Config, thinker_width: int) -> None:
        super().__init__()
        self.proj_in = nn.Linear(thinker_width, config.hidden_size)
        self.model = Qwen2Stack(config)
        self.proj_out = nn.Linear(config.hidden_size, head.diffusion_c_input_dim)

    def forward(self, states: Tensor) -> Tensor:
        """Return unit rows, float32 [batch, queries, width], of thinker states of that shape."""
        x = self.proj_in(states.to(self.proj_in.weight.dtype))
        x = self.model(x, BidirectionalContext(self.model, x))
        return F.normalize(self.proj_out(x).float(), dim=-1, eps=MIN_NORM)
