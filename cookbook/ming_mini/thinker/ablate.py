"""Measure held-out accuracy and loss with the routers in each other's place.

    python -m cookbook.ming_mini.thinker.ablate --model DIR --weights DIR --held-out DIR --out FILE

It shows whether each router has a function of its own.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from cookbook.ming_mini.thinker.library import Library
from cookbook.ming_mini.thinker.model import TrainableThinker, swap_routers
from cookbook.ming_mini.thinker.pack import load_thinker
from cookbook.ming_mini.thinker.shards import ShardFolder
from cookbook.ming_mini.thinker.tasks import KINDS, Kind
from cookbook.ming_mini.thinker.train import accuracy, new_library
from cookbook.ming_mini.thinker.training_losses import evaluate_batch
from sglang_omni.models.ming.thinker.routing import ROUTERS

TOKENS = 32_768
TEXT, IMAGE, AUDIO = ROUTERS
ORDERS: dict[str, tuple[str, ...]] = {
    "own": ROUTERS,
    "image by text": (TEXT, TEXT, AUDIO),
    "audio by text": (TEXT, IMAGE, TEXT),
    "image and audio exchanged": (TEXT, AUDIO, IMAGE),
    "text by image": (IMAGE, IMAGE, AUDIO),
    "text by audio": (AUDIO, IMAGE, AUDIO),
}
"""For each router, in the order of the routes, the one whose tensors it takes over."""


def kind_of(task: str) -> Kind:
    """Return the kind of a task from its name."""
    if task.startswith("picture"):
        return "picture"
    return "speech" if task in ("transcribe", "spoken_question") else "text"


def by_kind(accuracies: dict[str, float]) -> dict[Kind, float]:
    """Return the mean accuracy over the tasks of each kind."""
    found: dict[Kind, float] = {}
    for kind in KINDS:
        values = [value for task, value in accuracies.items() if kind_of(task) == kind]
        if values:
            found[kind] = round(sum(values) / len(values), 4)
    return found


@dataclass(frozen=True)
class Measured:
    """Mean accuracy of a kind's tasks, and mean loss of a batch, over its held-out answers."""

    accuracy: float
    loss: float


@torch.no_grad()
def measure(model: TrainableThinker, held_out: Library) -> dict[Kind, Measured]:
    """Return accuracy and loss of every available kind."""
    right = by_kind(accuracy(model, held_out))
    losses = {
        kind: [
            float(evaluate_batch(model, batch, held_out).loss)
            for batch in held_out.all(kind, TOKENS)
        ]
        for kind in right
    }
    return {
        kind: Measured(share, round(sum(losses[kind]) / len(losses[kind]), 4))
        for kind, share in right.items()
    }


def ablate(model: TrainableThinker, held_out: Library) -> dict[str, dict[Kind, Measured]]:
    """Measure every order of the routers. The model is left unchanged."""
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    results = {}
    for name, order in ORDERS.items():
        model.load_state_dict(swap_routers(own, order))
        results[name] = measure(model, held_out)
    model.load_state_dict(own)
    return results


def main() -> None:
    """Measure and write a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    device = torch.device(args.device)
    model = load_thinker(args.model, args.weights).to(device)
    held_out = new_library(args.model, model, device, seed=0)
    for kind, shard in ShardFolder(args.held_out).new():
        held_out.add(kind, shard)
    found = ablate(model, held_out)
    results = {name: {k: asdict(m) for k, m in kinds.items()} for name, kinds in found.items()}
    args.out.write_text(json.dumps(results, indent=1) + "\n")
    for name, kinds in results.items():
        print(name, json.dumps(kinds))


if __name__ == "__main__":
    main()
