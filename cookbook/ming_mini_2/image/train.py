"""Train Ming-mini 2 to draw, for a given time.

    python -m cookbook.ming_mini_2.image.train --checkpoint DIR --examples DIR --vae DIR \
        --output DIR --seconds 700

`--checkpoint` is the packed thinker, which stays as it is. `--pause` ends a call before the run is
over, with exit status 3; the next call continues from the state in `--output`. The last call draws
from `--tested` held-out prompts of each task with the averaged weights, writes what the judge says
to `held_out.json`, and shows some of the pictures in `held_out.png`.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from cookbook.ming_mini.schedule import MeanMeter, Rate, RunClock
from cookbook.ming_mini.thinker.train import PAUSED
from cookbook.ming_mini.weights import PIECE_BYTES
from cookbook.ming_mini_2.image.conditions import FrozenThinker
from cookbook.ming_mini_2.image.configs import SIZES, num_queries
from cookbook.ming_mini_2.image.drawing import PictureDrawer
from cookbook.ming_mini_2.image.examples import TASKS, Task, read_examples
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
from cookbook.ming_mini_2.image.vae import LatentCodec
from sglang_omni.models.ming.image.schedule import read_scheduler_config

LAYOUT, HELD_OUT_FILE, SHEET_FILE = "layout", "held_out.json", "held_out.png"
SAVE_SECONDS, PRINT_SECONDS = 60.0, 5.0


def run(trainer: DrawingTrainer, output: Path, clock: RunClock) -> None:
    """Train until the time is over; prints every five seconds, saves every minute."""
    meters: dict[Task, MeanMeter] = {task: MeanMeter() for task in TASKS}
    printed, saved = clock.elapsed, clock.elapsed
    while clock.running:
        task, report = trainer.train(clock.progress)
        if trainer.step % 5 == 0:
            meters[task].add({name: value.item() for name, value in report.items()})
        if clock.elapsed - printed > PRINT_SECONDS:
            printed = clock.elapsed
            means = {task: meter.flush() for task, meter in meters.items() if meter}
            print(f"{clock.spent:.0f} s, step {trainer.step}", means, flush=True)
        if clock.elapsed - saved > SAVE_SECONDS:
            saved = clock.elapsed
            trainer.save(output, clock.spent)
    trainer.save(output, clock.spent)


def test(trained: Path, builder: StoreBuilder, count: int) -> None:
    """Draw from held-out prompts with the weights in a folder, and write what the judge says."""
    layout = trained / LAYOUT
    model = load_drawing_model(layout, trained, builder.thinker.width, builder.device)
    judged = draw_held_out(model, read_scheduler_config(layout), builder, count)
    report = summarize(judged)
    print(report)
    (trained / HELD_OUT_FILE).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    contact_sheet(judged).save(trained / SHEET_FILE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or continue to train, as the command line says."""
    defaults = DrawingSettings()
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("checkpoint", "examples", "vae", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--tested", type=int, default=128, help="held-out prompts of each task")
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini_2")
    parser.add_argument("--seconds", type=float, default=700)
    parser.add_argument("--pause", type=float, default=math.inf, help="seconds of this call")
    parser.add_argument("--start", type=Path, help="weights to begin with")
    parser.add_argument("--draw", type=int, default=defaults.draw, help="examples of a step")
    parser.add_argument("--edit", type=int, default=defaults.edit, help="examples of a step")
    parser.add_argument("--edits", type=float, default=defaults.edits, help="share of the steps")
    parser.add_argument("--rate", type=float, default=defaults.rate.peak, help="the highest rate")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument(
        "--record", default=True, action=argparse.BooleanOptionalAction, help="in CUDA graphs"
    )
    parser.add_argument("--split-bytes", type=int, default=PIECE_BYTES, help="of a file, at most")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args(arguments)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device, sizes = torch.device(args.device), SIZES[args.sizes]
    settings = DrawingSettings(
        draw=args.draw,
        edit=args.edit,
        edits=args.edits,
        rate=Rate(args.rate, args.rate / 100, defaults.rate.warm_up),
        seed=args.seed,
        record=args.record,
        split_bytes=args.split_bytes,
    )
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
    run(trainer, args.output, clock)
    if clock.progress < 1:
        print(f"paused after {clock.spent:.0f} s: the same command goes on")
        sys.exit(PAUSED)
    if args.tested:
        test(args.output, builder, args.tested)


if __name__ == "__main__":
    main()
