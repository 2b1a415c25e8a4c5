"""AdamW as all of the recipe's steps use it, in a form that a CUDA graph can record."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

MAX_NORM = 1.0
"""Norm to which gradients are clipped."""


class Optimizer:
    """The optimizer of some weights; its rate is a tensor, written before every step.

    A step whose gradient is not finite leaves the weights as they are: one batch must not spoil
    them. The device decides, so that nothing waits for the gradient. `decay` has no effect on
    `steady` weights.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        betas: tuple[float, float],
        decay: float,
        steady: Iterable[nn.Parameter] = (),
    ) -> None:
        groups = [(list(weights), decay), (list(steady), 0.0)]
        self._weights = [weight for group, _ in groups for weight in group]
        device = self._weights[0].device
        self.rate = torch.zeros((), device=device)
        self._optimizer = torch.optim.AdamW(
            [{"params": group, "weight_decay": shrink} for group, shrink in groups if group],
            lr=self.rate,
            betas=betas,
            fused=True,
            capturable=device.type == "cuda",
        )

    def step(self, loss: Tensor) -> Tensor:
        """One step down the gradient of `loss`, whose norm is returned."""
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self._weights, MAX_NORM)
        # As a gradient scaler tells it: the fused step asks for this by name.
        self._optimizer.found_inf = (~norm.isfinite()).float()  # type: ignore[attr-defined]
        self._optimizer.step()
        return norm

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from another's state."""
        self._optimizer.load_state_dict(dict(state))
        for group in self._optimizer.param_groups:
            # Loading put another tensor into the rate's place.
            self.rate.copy_(group["lr"])
            group["lr"] = self.rate
