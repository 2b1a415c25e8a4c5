"""Average the weights of packed checkpoints, and of their hearing with shares of its own.

    python -m cookbook.ming_mini_2.thinker.average --output DIR --of 0.5:A 0.5:B \
        --hearing 0.25:A 0.25:B 0.5:OLDER

The checkpoints are moments of one training, or of trainings that began with one another: their
averages answer as they do, and are less fitted to the clips that were heard again and again. What
only sound passes (encoder, projector, routers) may come from trainings that answered in other
ways. The output is a copy of the first checkpoint of `--of` with the averaged weights.
"""

import argparse
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from cookbook.ming_mini.weights import average_of
from sglang_omni.models.checksums import write_checksums
from sglang_omni.models.weights_archive import MARKER_FILE, unpack_weights

WEIGHTS = "model-*.safetensors"
HEARING = re.compile(r"^audio\.|^linear_proj_audio\.|\.audio_gate\.")


@dataclass(frozen=True)
class Share:
    """A checkpoint and its share of an average."""

    share: float
    checkpoint: Path


def parse_share(text: str) -> Share:
    """Parse `0.25:FOLDER`.

    Raises:
        ValueError: The share is no number above 0, or there is no folder.
    """
    share, _, folder = text.partition(":")
    if not folder or not float(share) > 0:
        raise ValueError(f"{text} is not a share and a folder, as 0.25:FOLDER")
    return Share(float(share), Path(folder))


def average(of: Sequence[Share], hearing: Sequence[Share], output: Path) -> None:
    """Write a checkpoint with averaged weights.

    Raises:
        ValueError: Shares do not add up to 1, or a tensor is missing or has another shape.
    """
    for shares in (of, hearing):
        if abs(sum(one.share for one in shares) - 1) > 1e-6:
            raise ValueError("the shares of an average must add up to 1")
    tensors = {one.checkpoint: _load(one.checkpoint) for one in (*of, *hearing)}
    first = of[0].checkpoint
    shutil.copytree(first, output, ignore=shutil.ignore_patterns(MARKER_FILE))
    for path in sorted(output.glob(WEIGHTS)):
        averaged = {
            name: average_of(
                name,
                [
                    (one.share, tensors[one.checkpoint])
                    for one in (hearing if HEARING.search(name) else of)
                ],
            )
            for name in load_file(path)
        }
        save_file(averaged, path, metadata={"format": "pt"})
    write_checksums(output)


def _load(checkpoint: Path) -> dict[str, Tensor]:
    unpack_weights(checkpoint)
    found = [load_file(path) for path in sorted(checkpoint.glob(WEIGHTS))]
    return {name: tensor for part in found for name, tensor in part.items()}


def main() -> None:
    """Average, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--of", type=parse_share, nargs="+", required=True)
    parser.add_argument("--hearing", type=parse_share, nargs="+", help="as --of unless given")
    args = parser.parse_args()
    average(args.of, args.hearing or args.of, args.output)
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
