"""Train copies of a model on several GPUs; their weights are averaged every few steps.

    torchrun --nproc-per-node 3 -m -- cookbook.ming_mini.train_talker --corpus DIR ...

Each copy has a process, a GPU, a share of the corpus and an optimizer of its own, so that a step
stays one CUDA graph. Without torchrun there is one copy, and nothing is averaged.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

PERIOD = 8
"""Steps between two averages."""
SEEDS_APART = 1_000_003


@dataclass(frozen=True)
class Replicas:
    """This process's place among `count` copies; the first one prints and saves."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether this copy prints and saves."""
        return self.rank == 0

    def seed(self, seed: int) -> int:
        """Return the seed of this copy's own draws."""
        return seed + SEEDS_APART * self.rank

    @torch.no_grad()
    def start_equal(self, weights: Sequence[Tensor]) -> None:
        """Replace the weights by those of the first copy."""
        if self.count > 1:
            for weight in weights:
                dist.broadcast(weight, 0)

    @torch.no_grad()
    def meet(self, step: int, goes_on: bool, weights: Sequence[Tensor]) -> bool:
        """Average the weights [any shape, float32] of all copies, every `PERIOD` steps.

        Returns whether the training goes on: until a meeting where any copy has had enough.
        """
        if self.count == 1:
            return goes_on
        if step % PERIOD:
            return True
        vote = weights[0].new_full((1,), float(goes_on))
        joined = torch.cat([vote, *(weight.flatten() for weight in weights)])
        dist.all_reduce(joined)
        vote, *means = (joined / self.count).split([1, *(weight.numel() for weight in weights)])
        torch._foreach_copy_(
            list(weights),
            [mean.view_as(one) for mean, one in zip(means, weights, strict=True)],
        )
        return vote.item() == 1


ALONE = Replicas()
"""The place of a training that has no copies."""


def join_replicas(device: torch.device) -> tuple[Replicas, torch.device]:
    """Join the copies that torchrun started. Returns this one's place and its device."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return ALONE, device
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return Replicas(dist.get_rank(), dist.get_world_size()), device
