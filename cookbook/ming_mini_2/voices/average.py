"""Average the talker of a run with that of a packed checkpoint that its training began with.

    python -m cookbook.ming_mini_2.voices.average --run RUN --checkpoint DIR --share 0.5

Between the two lie weights that say more words right than either. The talker in RUN is replaced,
and `pack` makes a checkpoint of it. `--share` is the run's.
"""

import argparse
from pathlib import Path

from cookbook.ming_mini.train_talker import TALKER
from cookbook.ming_mini.weights import average_of, load_pieces, load_weights, save_pieces
from sglang_omni.models.weights_archive import unpack_weights


def average_talker(run: Path, checkpoint: Path, share: float) -> None:
    """Replace the talker's weights in a run by `share` of them and the rest of the checkpoint's.

    Raises:
        ValueError: The share is not between 0 and 1, or a tensor is missing or has another shape.
    """
    if not 0 < share < 1:
        raise ValueError(f"a share of {share} is not between 0 and 1")
    unpack_weights(checkpoint)
    folder = run / "speech"
    trained = load_pieces(folder, TALKER)
    former = load_weights(checkpoint / "talker" / "model.safetensors", TALKER)
    shares = ((share, trained), (1 - share, former))
    save_pieces({name: average_of(name, shares) for name in trained}, folder, TALKER)


def main() -> None:
    """Average, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder of `recipe.sh`")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.5)
    args = parser.parse_args()
    average_talker(args.run, args.checkpoint, args.share)
    print(f"averaged the talker in {args.run / 'speech'}")


if __name__ == "__main__":
    main()
