"""Expert parallelism on a CPU, where SGLang's expert products take ids of local experts only.

SGLang gives the experts of other ranks the id -1. Its GPU kernels skip them. On a CPU
`moe_forward_native` counts the tokens of each id: -1 is out of range, and an id that a token has
twice is counted once. So the experts of other ranks become local ones that the token does not use.
"""

from sglang.srt.layers.moe import MoeRunnerConfig
from sglang.srt.layers.moe.token_dispatcher.standard import (
    StandardDispatcher,
    StandardDispatchOutput,
)
from sglang.srt.layers.moe.topk import StandardTopKOutput
from torch import Tensor

from sglang_omni.models.ming.thinker.routing import mask_remote_experts
from sglang_omni.protocol.errors import StartupError


class MaskedDispatcher(StandardDispatcher):
    """SGLang's dispatcher, for products that do not know the id -1."""

    def __init__(self, config: MoeRunnerConfig) -> None:
        super().__init__(config)
        if self.num_local_experts < (config.top_k or 0):
            raise StartupError(
                f"on a CPU, a rank needs at least as many experts as a token uses: "
                f"{self.num_local_experts} are fewer than {config.top_k}; lower thinker.ep_size"
            )

    def dispatch(
        self, hidden_states: Tensor, topk_output: StandardTopKOutput
    ) -> StandardDispatchOutput:
        """Return the rows, and the experts of each as this rank numbers them."""
        output = super().dispatch(hidden_states, topk_output)
        weights, ids, logits = output.topk_output
        masked = mask_remote_experts(weights, ids, self.num_local_experts)
        return output._replace(topk_output=StandardTopKOutput(*masked, logits))
