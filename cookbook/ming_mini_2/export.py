"""Copy what a run of `recipe.sh` has trained so far into a few small files, and back.

    python -m cookbook.ming_mini_2.export --run RUN --output DIR --every 60
    python -m cookbook.ming_mini_2.export --restore DIR --run RUN

The first runs beside a training, so that a machine that ends early still leaves the averaged
weights of the last minute: in bf16, in files `weights-*.safetensors` below `--file-bytes`, with all
else that packing needs and the logs in `rest.tar.gz`. A version replaces the last one when all of
it is written. The second makes a folder of it that `pack` reads and that trainings begin with; the
optimizers' states are not in it.
"""

import argparse
import signal
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors import SafetensorError
from torch import Tensor

from cookbook.ming_mini.ctc_recogniser import CTC_RECOGNISER
from cookbook.ming_mini.thinker.train import PIECES as THINKER
from cookbook.ming_mini.train_talker import TALKER
from cookbook.ming_mini.train_vae import VAE
from cookbook.ming_mini.weights import load_pieces, save_pieces, to_bf16, to_float32
from cookbook.ming_mini_2.image.train_vae import SCALE_FILE, VAE_PIECES
from cookbook.ming_mini_2.image.trainer import PIECES as DRAWING

FILE_BYTES = 16_000_000
HEADER_BYTES = 400_000
"""Room for the names of a file's tensors."""
WEIGHTS, REST = "weights", "rest.tar.gz"
REST_PATTERNS = (
    "*.log",
    "thinker/*.log",
    "thinker/model/*",
    f"image/vae/{SCALE_FILE}",
    "image/*.log",
    "image/drawing/held_out.*",
)


@dataclass(frozen=True)
class Part:
    """A part of the model: its folder in a run, and what its files of weights are called."""

    folder: str
    pieces: str


PARTS = (
    Part("thinker/weights", THINKER),
    Part("speech", VAE),
    Part("speech", TALKER),
    Part("recogniser", CTC_RECOGNISER),
    Part("image/vae", VAE_PIECES),
    Part("image/drawing", DRAWING),
)


def trained_parts(run: Path) -> Iterator[Part]:
    """Yield the parts that have weights in a run."""
    for part in PARTS:
        if any((run / part.folder).glob(f"{part.pieces}-*.safetensors")):
            yield part


def export(run: Path, output: Path, file_bytes: int = FILE_BYTES) -> list[Path]:
    """Write the weights of a run and the rest to `output`. Returns the files.

    Raises:
        ValueError: A file would be larger than `file_bytes`.
    """
    tensors = {
        f"{part.pieces}/{name}": tensor
        for part in trained_parts(run)
        for name, tensor in to_bf16(load_pieces(run / part.folder, part.pieces)).items()
    }
    output.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=run) as name:
        new = Path(name)
        if tensors:
            save_pieces(tensors, new, WEIGHTS, file_bytes - HEADER_BYTES)
        _write_rest(run, new / REST)
        written = sorted(new.iterdir())
        for path in written:
            if path.stat().st_size > file_bytes:
                raise ValueError(f"{path.name} is larger than {file_bytes} bytes")
        moved = [_move(path, output) for path in written]
    for old in set(output.glob(f"{WEIGHTS}-*")).difference(moved):
        old.unlink()
    return moved


def _write_rest(run: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        for pattern in REST_PATTERNS:
            for path in sorted(run.glob(pattern)):
                tar.add(path, str(path.relative_to(run)))


def _move(path: Path, folder: Path) -> Path:
    """Move a file to another file system, where it is visible when it is complete."""
    partial = folder / f".{path.name}"
    partial.write_bytes(path.read_bytes())
    return partial.replace(folder / path.name)


def restore(exported: Path, run: Path) -> list[Part]:
    """Make a run's folder of exported files. Returns the parts whose weights it has.

    Raises:
        FileNotFoundError: There are no exported weights.
    """
    by_part: dict[str, dict[str, Tensor]] = {}
    for name, tensor in load_pieces(exported, WEIGHTS).items():
        pieces, _, own = name.partition("/")
        by_part.setdefault(pieces, {})[own] = tensor
    found = [part for part in PARTS if part.pieces in by_part]
    for part in found:
        folder = run / part.folder
        folder.mkdir(parents=True, exist_ok=True)
        save_pieces(to_float32(by_part[part.pieces]), folder, part.pieces)
    with tarfile.open(exported / REST) as tar:
        tar.extractall(run, filter="data")
    return found


def repeat(run: Path, output: Path, file_bytes: int, seconds: float) -> None:
    """Export again and again until SIGTERM comes, and once more then."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    due = time.monotonic() + seconds
    while not ending:
        time.sleep(0.2)
        if time.monotonic() >= due:
            try:
                export(run, output, file_bytes)
            except (OSError, ValueError, SafetensorError) as error:
                # The next version may succeed; the one before this is still there.
                print(f"nothing was exported: {error}", flush=True)
            due = time.monotonic() + seconds
    export(run, output, file_bytes)


def main() -> None:
    """Export or restore, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder of `recipe.sh`")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--output", type=Path, help="folder to write to")
    kind.add_argument("--restore", type=Path, help="folder of exported files")
    parser.add_argument("--every", type=float, help="seconds between versions, until SIGTERM")
    parser.add_argument("--file-bytes", type=int, default=FILE_BYTES, help="of a file, at most")
    args = parser.parse_args()
    if args.restore:
        print("restored", *(part.pieces for part in restore(args.restore, args.run)))
    elif args.every:
        repeat(args.run, args.output, args.file_bytes, args.every)
    else:
        for path in export(args.run, args.output, args.file_bytes):
            print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
