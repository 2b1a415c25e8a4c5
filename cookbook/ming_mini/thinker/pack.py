"""Pack trained weights as the top of a checkpoint in the released layout.

    python -m cookbook.ming_mini.thinker.pack --model DIR --weights DIR --output CHECKPOINT

Writes shards with their index, the configuration and the tokenizer. `cookbook.ming_mini.pack` packs
`talker/`.
"""

import argparse
import shutil
from pathlib import Path

from cookbook.ming_mini.thinker.layout import LAYOUT
from cookbook.ming_mini.thinker.model import TrainableThinker, checkpoint_tensors
from cookbook.ming_mini.thinker.picture_labels import NAMES
from cookbook.ming_mini.thinker.train import PIECES
from cookbook.ming_mini.weights import load_pieces
from sglang_omni.models.ming.tiny.write import write_shards


def load_thinker(model: Path, weights: Path, names: int = len(NAMES)) -> TrainableThinker:
    """Load the trained model, whose pictures show one of `names` things in a slot.

    Raises `FileNotFoundError` if there are no weights.
    """
    thinking = TrainableThinker(model, names)
    thinking.load_state_dict(load_pieces(weights, PIECES))
    return thinking.eval()


def pack(thinking: TrainableThinker, model: Path, checkpoint: Path) -> int:
    """Write the files of a model whose layout is in the folder `model`. Returns their bytes."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    for name in LAYOUT:
        shutil.copyfile(model / name, checkpoint / name)
    write_shards(checkpoint, {name: one.detach() for name, one in checkpoint_tensors(thinking)})
    return sum(file.stat().st_size for file in checkpoint.iterdir() if file.is_file())


def main() -> None:
    """Pack, and print the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the layout")
    parser.add_argument("--weights", type=Path, required=True, help="output of the training")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    size = pack(load_thinker(args.model, args.weights), args.model, args.output)
    print(f"wrote {args.output}: {size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
