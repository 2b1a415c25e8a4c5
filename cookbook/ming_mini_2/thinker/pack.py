"""Pack trained weights as the top of a checkpoint in the released layout.

    python -m cookbook.ming_mini_2.thinker.pack --model DIR --weights DIR --output CHECKPOINT

`--weights` is the output of the training, or what `export` made of it. The capabilities of the
thinker are added to those that `CHECKPOINT` declares.
"""

import argparse
from pathlib import Path

from cookbook.ming_mini.thinker.model import TrainableThinker
from cookbook.ming_mini.thinker.pack import load_thinker as load_trained
from cookbook.ming_mini.thinker.pack import pack
from cookbook.ming_mini_2.capabilities import THINKER_ABILITIES, declare
from cookbook.ming_mini_2.thinker.export import PIECES, load_exported
from cookbook.ming_mini_2.thinker.tasks import CURRICULUM


def load_thinker(model: Path, weights: Path) -> TrainableThinker:
    """Load the trained model. Raises `FileNotFoundError` if there are no weights."""
    names = len(CURRICULUM.marks)
    if not list(weights.glob(f"{PIECES}-*.safetensors")):
        return load_trained(model, weights, names)
    thinking = TrainableThinker(model, names)
    thinking.load_state_dict(load_exported(weights))
    return thinking.eval()


def main() -> None:
    """Pack, and print the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the layout")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    size = pack(load_thinker(args.model, args.weights), args.model, args.output)
    declare(args.output, THINKER_ABILITIES)
    print(f"wrote {args.output}: {size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
