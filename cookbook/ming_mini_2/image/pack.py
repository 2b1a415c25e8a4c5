"""Add the image folders to a packed checkpoint: bf16, in the released layout.

    python -m cookbook.ming_mini_2.image.pack --weights DIR --vae DIR --checkpoint DIR

`--weights` is the output of `train`, `--vae` that of `train_vae`. Updates the checksums of all
files.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from cookbook.ming_mini_2.image.configs import SIZES, ImageSizes
from cookbook.ming_mini_2.image.layout import write_layout
from cookbook.ming_mini_2.image.model import DrawingModel
from cookbook.ming_mini_2.image.train_vae import load_vae, read_scale
from cookbook.ming_mini_2.image.trainer import load_drawing_model
from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE, WEIGHTS_FILE
from sglang_omni.models.checksums import write_checksums
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.image.config import CONNECTOR, HEAD, SCHEDULER, TRANSFORMER, VAE
from sglang_omni.models.ming.tiny.files import write_tensors

FOLDERS = (HEAD, CONNECTOR, TRANSFORMER, VAE, SCHEDULER)
"""The folders of the image half."""
BACKBONE = "model."
"""What the tensors of the connector's own folder begin with; its projections are the head's."""


def pack(weights: Path, vae: Path, sizes: ImageSizes, checkpoint: Path) -> int:
    """Write the image folders of `checkpoint`. Returns the bytes of their files.

    Raises:
        FileNotFoundError: There are no weights.
        CheckpointError: The checkpoint has no thinker.
    """
    width = read_encoder_config(checkpoint).hidden_size
    write_layout(checkpoint, sizes, read_scale(vae))
    model = load_drawing_model(checkpoint, weights, width, torch.device("cpu"))
    for path, tensors in list_tensors(model).items():
        write_tensors(checkpoint / path, tensors)
    trained = load_vae(vae, sizes, torch.device("cpu"))
    write_tensors(checkpoint / VAE / DIFFUSERS_WEIGHTS_FILE, trained.state_dict())
    write_checksums(checkpoint)
    return measure_folders(checkpoint)


def list_tensors(model: DrawingModel) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each file of a trained model. The reader stays behind."""
    connector = model.connector.state_dict()
    layers = {name: one for name, one in connector.items() if name.startswith(BACKBONE)}
    head = {name: one for name, one in connector.items() if name not in layers}
    return {
        f"{HEAD}/{WEIGHTS_FILE}": {**head, model.head.query_tensor: model.queries.detach()},
        f"{CONNECTOR}/{WEIGHTS_FILE}": layers,
        f"{TRANSFORMER}/{DIFFUSERS_WEIGHTS_FILE}": dict(model.transformer.state_dict()),
    }


def measure_folders(checkpoint: Path) -> int:
    """Return the bytes of all files of the image folders."""
    files = (file for name in FOLDERS for file in (checkpoint / name).rglob("*"))
    return sum(file.stat().st_size for file in files if file.is_file())


def main(arguments: Sequence[str] | None = None) -> None:
    """Pack, and print the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini_2")
    args = parser.parse_args(arguments)
    size = pack(args.weights, args.vae, SIZES[args.sizes], args.checkpoint)
    print(f"wrote the image folders of {args.checkpoint}: {size / 2**20:.2f} MB")


if __name__ == "__main__":
    main()
