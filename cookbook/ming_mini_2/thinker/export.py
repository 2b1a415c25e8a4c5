"""Write a training's weights for another machine: bf16, in pieces of a given size.

    python -m cookbook.ming_mini_2.thinker.export --weights DIR --output DIR --split-bytes 15000000

The weights are those that the training saves, the average. The state of the optimizer is not among
them: a training that begins with them (`--start`) has a new one.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from cookbook.ming_mini.thinker.train import PIECES as TRAINED
from cookbook.ming_mini.weights import (
    PIECE_BYTES,
    load_pieces,
    save_pieces,
    to_bf16,
    to_float32,
)

PIECES = "exported"


def export(weights: Path, output: Path, split_bytes: int = PIECE_BYTES) -> list[Path]:
    """Write the weights of a training to `output`. Returns the files.

    Raises:
        FileNotFoundError: There are no weights.
        ValueError: A tensor alone is larger than `split_bytes`.
    """
    output.mkdir(parents=True, exist_ok=True)
    small = to_bf16(load_pieces(weights, TRAINED))
    largest = max(small, key=lambda name: small[name].nbytes)
    if small[largest].nbytes > split_bytes:
        raise ValueError(f"{largest} has {small[largest].nbytes} bytes, more than {split_bytes}")
    return save_pieces(small, output, PIECES, split_bytes - HEADER_BYTES)


HEADER_BYTES = 200_000
"""Room for the names of a piece's tensors."""


def load_exported(folder: Path) -> Mapping[str, Tensor]:
    """Return exported weights as float32. Raises `FileNotFoundError`."""
    return to_float32(load_pieces(folder, PIECES))


def main() -> None:
    """Write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="output of the training")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--split-bytes", type=int, default=PIECE_BYTES, help="of a file, at most")
    args = parser.parse_args()
    files = export(args.weights, args.output, args.split_bytes)
    print("\n".join(f"{path}: {path.stat().st_size} bytes" for path in files))


if __name__ == "__main__":
    main()
