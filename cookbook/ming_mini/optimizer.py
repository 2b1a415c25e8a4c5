"""The optimizer of all steps of the recipe, in a form that a CUDA graph can record."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cookbook.ming_mini.muon import Muon

MAX_NORM = 1.0
"""The norm to which gradients are clipped."""


class Optimizer:
    """AdamW for some weights; its learning rate is a tensor, written before every step.

    A step with a non-finite gradient leaves the weights unchanged, so that one batch cannot destroy
    them. The device decides this, so that nothing waits for the gradient. `decay` does not apply to
    `steady` weights. Matrices in `hidden` are stepped by Muon in place of AdamW.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        betas: tuple[float, float],
        decay: float,
        steady: Iterable[nn.Parameter] = (),
        hidden: Iterable[nn.Parameter] = (),
    ) -> None:
        groups, hidden = [(list(weights), decay), (list(steady), 0.0)], list(hidden)
        self._weights = [weight for group, _ in groups for weight in group] + hidden
        self._muon = Muon(hidden, decay) if hidden else None
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
        """Step down the gradient of `loss`. Returns the norm of the gradient."""
        for weight in self._weights:
            weight.grad = None
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self._weights, MAX_NORM)
        finite = norm.isfinite()
        # The fused step reads this attribute, which a gradient scaler would set.
        self._optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
        self._optimizer.step()
        if self._muon is not None:
            self._muon.step(self.rate, finite)
        return norm

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`."""
        muon = {} if self._muon is None else {"muon": self._muon.state_dict()}
        return self._optimizer.state_dict() | muon

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from another's state."""
        state = dict(state)
        if self._muon is not None:
            self._muon.load_state_dict(state.pop("muon"))
        self._optimizer.load_state_dict(state)
        for group in self._optimizer.param_groups:
            # Loading replaced the tensor of the learning rate.
            self.rate.copy_(group["lr"])
            group["lr"] = self.rate
