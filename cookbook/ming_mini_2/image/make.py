"""Make examples with all cores: prompts, and pictures as numbers.

    python -m cookbook.ming_mini_2.image.make --model DIR --output DIR --draw 200000 --edit 100000

`--model` is the layout of the thinker, or a checkpoint: its tokenizer reads the prompts.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import get_args

from cookbook.ming_mini.thinker.items import Split
from cookbook.ming_mini_2.image.configs import SIZES, num_queries
from cookbook.ming_mini_2.image.examples import Task, stream_examples, write_examples
from cookbook.ming_mini_2.image.prompts import open_prompts
from cookbook.ming_mini_2.thinker.excluded import read_excluded

PART = 5000
"""Examples of a file's maker."""


@dataclass(frozen=True)
class ExampleJob:
    """Files to make: `count` examples that follow from task, split and seed."""

    model: Path
    output: Path
    task: Task
    split: Split
    seed: str
    count: int
    num_queries: int


def make_examples(job: ExampleJob) -> int:
    """Write the files of a job. Returns the number of examples."""
    builder = open_prompts(job.model, job.num_queries)
    stream = stream_examples(job.task, job.seed, job.split, read_excluded())
    write_examples(job.output, f"{job.split}_{job.seed}", job.task, stream, job.count, builder)
    return job.count


def main(arguments: Sequence[str] | None = None) -> None:
    """Make examples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--sizes", choices=tuple(SIZES), default="mini_2")
    parser.add_argument("--split", choices=get_args(Split), default="train")
    parser.add_argument("--draw", type=int, default=0, help="number of pictures to draw")
    parser.add_argument("--edit", type=int, default=0, help="number of pictures to edit")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    queries = num_queries(SIZES[args.sizes])
    counts: dict[Task, int] = {"draw": args.draw, "edit": args.edit}
    jobs = [
        ExampleJob(args.model, args.output, task, args.split, f"{args.seed}_{start}",
                   min(PART, count - start), queries)
        for task, count in counts.items()
        for start in range(0, count, PART)
    ]  # fmt: skip
    with ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
        made = sum(pool.map(make_examples, jobs))
    print(f"wrote {args.output}: {made} examples")


if __name__ == "__main__":
    main()
