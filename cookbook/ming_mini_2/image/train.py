"""Train Ming-mini 2 to draw, for a given time.

    python -m cookbook.ming_mini_2.image.train --checkpoint DIR --examples DIR --vae DIR \
        --output DIR --seconds 700

`--checkpoint` is the packed thinker, which stays as it is. The first part of the run
(`--reading-until`) teaches the query tokens to read prompts, the rest the transformer to draw.
`--pause` ends a call before the run is over, with exit status 3; the next call continues from the
state in `--output`. The last call draws from `--tested` held-out prompts of each task with the
averaged weights, writes what the judge says to `held_out.json`, and shows some of the pictures in
`held_out.png`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from cookbook.ming_mini.options import run_parser, settings_from_args
from cookbook.ming_mini.schedule import Rate, RunClock
from cookbook.ming_mini.thinker.train import PAUSED
from cookbook.ming_mini_2.image.conditions import FrozenThinker
from cookbook.ming_mini_2.image.configs import SIZES, num_queries
from cookbook.ming_mini_2.image.drawing import PictureDrawer
from cookbook.ming_mini_2.image.examples import read_examples
from cookbook.ming_mini_2.image.held_out import contact_sheet, draw_held_out, summarize
from cookbook.ming_mini_2.image.layout import write_layout
from cookbook.ming_mini_2.image.prompts import open_prompts
from cookbook.ming_mini_2.image.store import StoreBuilder
from cookbook.ming_mini_2.image.train_vae import load_vae, read_scale
from cookbook.ming_mini_2.image.trainer import (
    DrawingSettings,
    DrawingTrainer,
    load_drawing_model,
)
from cookbook.ming_mini_2.image.training_run import run_trainer
from cookbook.ming_mini_2.image.vae import LatentCodec
from sglang_omni.models.ming.image.schedule import read_scheduler_config

LAYOUT, HELD_OUT_FILE, SHEET_FILE = "layout", "held_out.json", "held_out.png"


def test(trained: Path, builder: StoreBuilder, count: int) -> None:
    """Draw from held-out prompts with the weights in a folder, and write what the judge says."""
    layout = trained / LAYOUT
    model = load_drawing_model(layout, trained, builder.thinker.width, builder.device)
    judged = draw_held_out(model, read_scheduler_config(layout), builder, count)
    report = summarize(judged)
    print(report)
    (trained / HELD_OUT_FILE).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    contact_sheet(judged).save(trained / SHEET_FILE)


def parse_arguments(
    arguments: Sequence[str] | None,
) -> tuple[argparse.Namespace, DrawingSettings]:
    """Parse the command line. Returns the arguments and the settings."""
    defaults = DrawingSettings()
    parser = run_parser(__doc__, defaults, defaults.rate.peak, data="examples")
    parser.set_defaults(seconds=700.0)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--tested", type=int, default=128, help="held-out prompts of each task")
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini_2")
    parser.add_argument("--start", type=Path, help="weights to begin with")
    args = parser.parse_args(arguments)
    rate = Rate(args.peak, args.peak / 100, defaults.rate.warm_up)
    return args, replace(defaults, rate=rate, **settings_from_args(args, defaults))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or continue to train, as the command line says."""
    args, settings = parse_arguments(arguments)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device, sizes = torch.device(args.device), SIZES[args.sizes]
    args.output.mkdir(parents=True, exist_ok=True)
    write_layout(args.output / LAYOUT, sizes, read_scale(args.vae))
    thinker = FrozenThinker(args.checkpoint, device)
    codec = LatentCodec(load_vae(args.vae, sizes, device), read_scale(args.vae))
    prompts = open_prompts(args.checkpoint, num_queries(sizes))
    builder = StoreBuilder(thinker, codec, PictureDrawer(device), prompts, device)
    stores = {
        kind: builder.build(kind, part) for kind, part in read_examples(args.examples).items()
    }
    print("prepared", {str(kind): len(store) for kind, store in stores.items()}, flush=True)
    trainer = DrawingTrainer(args.output / LAYOUT, settings, thinker, stores, device, args.start)
    clock = RunClock(args.seconds, args.pause, trainer.resume(args.output))
    run_trainer(trainer, trainer.train, args.output, clock)
    if clock.progress < 1:
        print(f"paused after {clock.spent:.0f} s: the same command goes on")
        sys.exit(PAUSED)
    if args.tested:
        test(args.output, builder, args.tested)


if __name__ == "__main__":
    main()
