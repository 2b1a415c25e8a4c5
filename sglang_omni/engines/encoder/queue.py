"""The requests that wait for a forward pass, and the order in which they get one."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.encoder.batch import next_batch, split_steps
from sglang_omni.engines.encoder.contract import AudioEncodeRequest, VisionEncodeRequest
from sglang_omni.engines.encoder.modality_encoder import Cost
from sglang_omni.engines.runtime.shared_array import SharedArray

Request = VisionEncodeRequest | AudioEncodeRequest


@dataclass(frozen=True)
class WaitingRequest:
    """A checked request: the `parts` of its steps that remain to be encoded, the next one first,
    and the `features` [rows, hidden] of each part before them."""

    request: Request
    load: Cost
    parts: tuple[range, ...]
    features: tuple[Tensor, ...] = ()

    @property
    def source(self) -> SharedArray:
        """Where its pixels or samples lie."""
        request = self.request
        return request.pixels if isinstance(request, VisionEncodeRequest) else request.samples

    def next_part(self, array: np.ndarray) -> np.ndarray:
        """Return what the next pass encodes of its `array`, whose first axis is time."""
        rows, part = len(array) // self.load.steps, self.parts[0]
        return array[part.start * rows : part.stop * rows]

    def with_features(self, features: Tensor) -> "WaitingRequest":
        """Return what is left of it once its next part has these `features`."""
        return replace(self, parts=self.parts[1:], features=(*self.features, features))

    def all_features(self) -> Tensor:
        """Return the features of every part encoded, in order: [rows, hidden]."""
        return self.features[0] if len(self.features) == 1 else torch.cat(self.features)


class PassQueue:
    """Requests by arrival. A request that exceeds `budget` is encoded in several passes.

    Such split requests take turns with each other, one part a pass, and with the whole ones: while
    both wait, passes alternate. A whole request waits for one part of the split ones at most, and
    no stream of whole requests keeps the split ones from advancing.
    """

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._whole: dict[str, WaitingRequest] = {}
        self._split: dict[str, WaitingRequest] = {}
        self._last_was_part = False

    def __len__(self) -> int:
        return len(self._whole) + len(self._split)

    def add(self, request_id: str, request: Request, load: Cost) -> None:
        """Take a request in."""
        parts = split_steps(load.steps, load.cost, self._budget)
        queue = self._whole if len(parts) == 1 else self._split
        queue[request_id] = WaitingRequest(request, load, parts)

    def put_back(self, request_id: str, waiting: WaitingRequest) -> None:
        """Queue a request of which parts remain, behind the other split ones."""
        self._split[request_id] = waiting

    def cancel(self, request_id: str) -> None:
        """Forget a request, which need not be there."""
        self._whole.pop(request_id, None)
        self._split.pop(request_id, None)

    def take(self) -> dict[str, WaitingRequest]:
        """Remove and return what the next pass encodes: whole requests, or a part of one."""
        self._last_was_part = bool(self._split) and not (self._whole and self._last_was_part)
        if self._last_was_part:
            request_id = next(iter(self._split))
            return {request_id: self._split.pop(request_id)}
        costs = ((request_id, one.load.cost) for request_id, one in self._whole.items())
        return {key: self._whole.pop(key) for key in next_batch(costs, self._budget)}
