"""The image folders of a checkpoint without their weights, in the released layout.

    python -m cookbook.ming_mini_2.image.layout --count

There is no `byt5`: the pictures show no letters, and the loader takes its absence.
"""

import argparse
import tempfile
from pathlib import Path

from cookbook.ming_mini_2.image.configs import (
    SIZES,
    UNSCALED,
    ImageSizes,
    LatentScale,
    connector_config,
    head_config,
    transformer_config,
    vae_config,
)
from cookbook.ming_mini_2.image.model import count_parameters, new_drawing_model
from cookbook.ming_mini_2.image.vae import new_vae
from sglang_omni.models.ming.image.config import CONNECTOR, HEAD, SCHEDULER, TRANSFORMER, VAE
from sglang_omni.models.ming.tiny.files import write_json
from sglang_omni.models.ming.tiny.image_configs import build_scheduler_config


def write_layout(folder: Path, sizes: ImageSizes, scale: LatentScale = UNSCALED) -> None:
    """Write the configuration of every image folder."""
    configs = {
        HEAD: head_config(sizes),
        CONNECTOR: connector_config(sizes),
        TRANSFORMER: transformer_config(sizes),
        VAE: vae_config(sizes, scale),
    }
    for name, config in configs.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        write_json(folder / name / "config.json", config)
    (folder / SCHEDULER).mkdir(parents=True, exist_ok=True)
    write_json(folder / SCHEDULER / "scheduler_config.json", build_scheduler_config())


def main() -> None:
    """Print the parameters of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true", required=True)
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini_2")
    parser.add_argument("--thinker-width", type=int, default=256)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_layout(Path(folder), SIZES[args.sizes])
        model = new_drawing_model(Path(folder), args.thinker_width, seed=0)
        counts = count_parameters(model)
        vae = new_vae(SIZES[args.sizes], seed=0)
    counts["vae"] = sum(one.numel() for one in vae.parameters())
    counts["all"] = sum(counts.values())
    print("\n".join(f"{name}: {count}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
