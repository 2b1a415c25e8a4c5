"""Pack what a run has trained as a checkpoint; what it has not is taken from another checkpoint.

    python -m cookbook.ming_mini_2.pack --run RUN --output CHECKPOINT

`--run` is the folder of `recipe.sh`, or what `export --restore` made. The thinker, the voices
(talker and VAE together) and the image half are parts of their own; `--base`, the bundled
checkpoint unless another is named, has those that were not trained.
`--without` leaves out of the capabilities what the evaluation says was not learnt. All weights are
rounded (`rounding.py`).
"""

import argparse
import shutil
from collections.abc import Collection
from pathlib import Path

from cookbook.ming_mini.thinker.pack import pack as pack_thinker
from cookbook.ming_mini.thinker.train import PIECES as THINKER
from cookbook.ming_mini.train_talker import TALKER
from cookbook.ming_mini.train_vae import VAE
from cookbook.ming_mini_2.capabilities import LEAVABLE, THINKER_ABILITIES, declare
from cookbook.ming_mini_2.export import trained_parts
from cookbook.ming_mini_2.image import pack as image
from cookbook.ming_mini_2.image.configs import SIZES
from cookbook.ming_mini_2.image.train_vae import VAE_PIECES
from cookbook.ming_mini_2.image.trainer import PIECES as DRAWING
from cookbook.ming_mini_2.rounding import SPEECH_VAE_BITS, round_checkpoint
from cookbook.ming_mini_2.thinker.pack import load_thinker
from cookbook.ming_mini_2.voices import pack as voices
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.checksums import write_checksums
from sglang_omni.models.weights_archive import MARKER_FILE, unpack_weights

TALKER_FOLDER, SPEECH_VAE = "talker", "vae"


def pack(run: Path, checkpoint: Path, base: Path, without: Collection[str] = ()) -> list[str]:
    """Write a checkpoint. Returns the names of the parts that the run has trained.

    Without a trained image half, it draws if the base does.

    Raises:
        FileNotFoundError: The base lacks the thinker or the voices that the run lacks.
        CheckpointError: The base is broken.
    """
    unpack_weights(base)
    checkpoint.mkdir(parents=True, exist_ok=True)
    trained = {part.pieces for part in trained_parts(run)}
    parts = []
    for file in base.iterdir():
        if file.is_file() and file.name != MARKER_FILE:
            shutil.copyfile(file, checkpoint / file.name)
    if THINKER in trained:
        parts.append("thinker")
        model = run / "thinker" / "model"
        pack_thinker(load_thinker(model, run / "thinker" / "weights"), model, checkpoint)
        declare(checkpoint, THINKER_ABILITIES)
    if {TALKER, VAE} <= trained:
        parts.append("voices")
        voices.pack(run / "speech", checkpoint, "locked", without)
    else:
        shutil.copytree(base / TALKER_FOLDER, checkpoint / TALKER_FOLDER, dirs_exist_ok=True)
    if {DRAWING, VAE_PIECES} <= trained:
        parts.append("drawing")
        pictures = run / "image"
        image.pack(pictures / "drawing", pictures / "vae", SIZES["mini_2"], checkpoint)
    else:
        for folder in filter(Path.is_dir, (base / name for name in image.FOLDERS)):
            shutil.copytree(folder, checkpoint / folder.name, dirs_exist_ok=True)
    round_checkpoint(checkpoint / TALKER_FOLDER / SPEECH_VAE, SPEECH_VAE_BITS)
    round_checkpoint(checkpoint)
    write_checksums(checkpoint)
    return parts


def main() -> None:
    """Pack, and print the parts and the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--base", type=Path, default=MING_MINI)
    parser.add_argument("--without", nargs="*", default=(), choices=LEAVABLE)
    parser.add_argument(
        "--unpack", action="store_true", help="only unpack the base, before programs begin with it"
    )
    args = parser.parse_args()
    if args.unpack:
        unpack_weights(args.base)
        return
    if not (args.run and args.output):
        parser.error("--run and --output are required")
    parts = pack(args.run, args.output, args.base, args.without)
    size = sum(file.stat().st_size for file in args.output.rglob("*") if file.is_file())
    print(f"wrote {args.output}: {size / 10**6:.1f} MB; trained: {', '.join(parts) or 'nothing'}")


if __name__ == "__main__":
    main()
