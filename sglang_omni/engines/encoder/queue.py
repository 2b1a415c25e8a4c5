"""The queue of requests that wait for a forward pass."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.encoder.batch import select_batch, split_steps
from sglang_omni.engines.encoder.contract import AudioEncodeRequest, VisionEncodeRequest
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.models.encoder import Cost

EncodeRequest = VisionEncodeRequest | AudioEncodeRequest


@dataclass(frozen=True)
class WaitingRequest:
    """A valid request that waits for a forward pass.

    `parts` are the time steps of its remaining passes, in order. `features` are the features
    [rows, hidden] of the parts that are already encoded.
    """

    request: EncodeRequest
    cost: Cost
    parts: tuple[range, ...]
    features: tuple[Tensor, ...] = ()

    @property
    def source(self) -> SharedArray:
        """Return the array with its pixels or samples."""
        request = self.request
        return request.pixels if isinstance(request, VisionEncodeRequest) else request.samples

    def next_part(self, array: np.ndarray) -> np.ndarray:
        """Return the slice of its `array` [time, ...] that the next pass encodes."""
        rows, part = len(array) // self.cost.steps, self.parts[0]
        return array[part.start * rows : part.stop * rows]

    def with_features(self, features: Tensor) -> "WaitingRequest":
        """Return the request after its next part was encoded as `features`."""
        return replace(self, parts=self.parts[1:], features=(*self.features, features))

    def all_features(self) -> Tensor:
        """Return the features [rows, hidden] of all encoded parts, in order."""
        return self.features[0] if len(self.features) == 1 else torch.cat(self.features)


class PassQueue:
    """A queue by arrival. A request that exceeds `budget` is split over several passes.

    Split requests take turns, one part per pass. While both whole and split requests wait, passes
    alternate between them. So a whole request waits for one part of a split one at most, and whole
    requests never starve split ones.
    """

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._whole: dict[str, WaitingRequest] = {}
        self._split: dict[str, WaitingRequest] = {}
        self._last_was_part = False

    def __len__(self) -> int:
        return len(self._whole) + len(self._split)

    def add(self, request_id: str, request: EncodeRequest, cost: Cost) -> None:
        """Queue a request."""
        parts = split_steps(cost.steps, cost.amount, self._budget)
        queue = self._whole if len(parts) == 1 else self._split
        queue[request_id] = WaitingRequest(request, cost, parts)

    def put_back(self, request_id: str, waiting: WaitingRequest) -> None:
        """Queue a request with remaining parts, behind the other split requests."""
        self._split[request_id] = waiting

    def cancel(self, request_id: str) -> None:
        """Drop a request, if it is queued."""
        self._whole.pop(request_id, None)
        self._split.pop(request_id, None)

    def take(self) -> dict[str, WaitingRequest]:
        """Remove and return the requests of the next pass: whole requests or one split request."""
        self._last_was_part = bool(self._split) and not (self._whole and self._last_was_part)
        if self._last_was_part:
            request_id = next(iter(self._split))
            return {request_id: self._split.pop(request_id)}
        costs = ((request_id, waiting.cost.amount) for request_id, waiting in self._whole.items())
        return {key: self._whole.pop(key) for key in select_batch(costs, self._budget)}
