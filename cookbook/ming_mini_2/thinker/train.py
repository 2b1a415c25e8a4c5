"""Train the thinker of Ming-mini 2 and its encoders on shards, for a given time.

    python -m cookbook.ming_mini_2.thinker.train --model DIR --shards DIR --held-out DIR \
        --output DIR --start CHECKPOINT --seconds 900

It is the training of Ming-mini with other tasks, with films, and with the average of the weights
as its result. `--start` is a packed checkpoint, which may be smaller, or the weights that `export`
wrote.
"""

from pathlib import Path

from cookbook.ming_mini.thinker.train import Trainer, new_parser, train
from cookbook.ming_mini_2.thinker.export import PIECES, load_exported
from cookbook.ming_mini_2.thinker.start_weights import start_from
from cookbook.ming_mini_2.thinker.tasks import CURRICULUM
from sglang_omni.models.checkpoint_files import INDEX_FILE
from sglang_omni.models.weights_archive import unpack_weights

SHARES = "0.29,0.31,0.37,0.03"
"""Of a step's tokens, for text, pictures, speech and films."""
AVERAGE = 0.998


def load_start(trainer: Trainer, folder: Path, layout: Path) -> None:
    """Load the weights to begin with; the optimizer and the average are new.

    Raises:
        FileNotFoundError: There are neither a packed checkpoint nor exported weights.
        CheckpointError: The packed checkpoint is broken.
        OSError: Its archive cannot be unpacked.
    """
    if (folder / INDEX_FILE).exists():
        # The bundled checkpoint's weights lie in an archive beside it until they are first used.
        unpack_weights(folder)
        started = start_from(trainer.model, layout, folder)
        counts = {way: len(names) for way, names in vars(started).items()}
        print(f"started from {folder}: {counts}", flush=True)
    elif list(folder.glob(f"{PIECES}-*.safetensors")):
        trainer.model.load_state_dict(load_exported(folder))
    else:
        trainer.load_weights(folder)
    trainer.restart_average()


def main() -> int:
    """Train. Return 0 if the run is over, 3 if another call must continue it."""
    parser = new_parser(__doc__)
    parser.set_defaults(shares=SHARES, average=AVERAGE)
    args = parser.parse_args()

    def load(trainer: Trainer, folder: Path) -> None:
        load_start(trainer, folder, args.model)

    return train(args, CURRICULUM, load)


if __name__ == "__main__":
    raise SystemExit(main())
