"""Draw from held-out prompts with the modules of the training, and judge the pictures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw

from cookbook.ming_mini_2.image.conditions import compute_rows
from cookbook.ming_mini_2.image.edits import PictureEdit
from cookbook.ming_mini_2.image.examples import (
    TASKS,
    DrawnExample,
    Task,
    encode_examples,
    stream_examples,
)
from cookbook.ming_mini_2.image.flow import DrawingPlan, draw_latents
from cookbook.ming_mini_2.image.judge import PictureVerdict, judge, judge_edit
from cookbook.ming_mini_2.image.model import DrawingModel
from cookbook.ming_mini_2.image.store import StoreBuilder
from cookbook.ming_mini_2.image.velocity import VelocityModel
from cookbook.ming_mini_2.thinker.excluded import read_excluded

SEED = "held-out pictures"
SHOWN, COLUMNS, CELL, LINE = 48, 6, 264, 16
"""Pictures on a sheet and in a row, pixels of one, and pixels of a line of text."""


@dataclass(frozen=True)
class JudgedPicture:
    """A drawn picture, uint8 [height, width, 3], with what the judge says."""

    example: DrawnExample
    pixels: np.ndarray
    verdict: PictureVerdict


def held_out_examples(task: Task, count: int) -> list[DrawnExample]:
    """Return held-out examples of a task: the same ones each time."""
    return list(islice(stream_examples(task, SEED, "held_out", read_excluded()), count))


def judge_example(pixels: np.ndarray, example: DrawnExample) -> PictureVerdict:
    """Judge a picture, uint8 [height, width, 3], that was drawn for an example."""
    if example.source is None:
        return judge(pixels, example.target.content)
    edit = PictureEdit(example.edit, example.text, example.source, example.target)
    return judge_edit(pixels, edit)


@torch.no_grad()
def draw_held_out(
    model: DrawingModel, scheduler: Mapping[str, Any], builder: StoreBuilder, count: int
) -> list[JudgedPicture]:
    """Draw from `count` held-out prompts of each task."""
    predict = VelocityModel(model.transformer).predict
    judged = []
    for task in TASKS:
        examples = held_out_examples(task, count)
        for kind, arrays in encode_examples(examples, builder.prompts).items():
            store = builder.build(kind, arrays)
            every = torch.arange(len(store), device=builder.device)
            rows = compute_rows(model, builder.thinker, store.select_prompts(every).prompts)
            batch = store.select_pictures(every)
            latents = draw_latents(
                predict, rows, batch.reference, tuple(batch.target.shape), DrawingPlan(scheduler)
            )
            pictures = builder.codec.decode(latents).round().to(torch.uint8).cpu().numpy()
            chosen = [one for one in examples if one.kind == kind]
            judged += [
                JudgedPicture(example, pixels, judge_example(pixels, example))
                for example, pixels in zip(chosen, pictures, strict=True)
            ]
    return judged


def summarize(judged: Sequence[JudgedPicture]) -> dict[str, float]:
    """Return the share of right pictures of each task and of each kind of example."""
    totals, right = Counter[str](), Counter[str]()
    for one in judged:
        for name in list_groups(one.example):
            totals[name] += 1
            right[name] += one.verdict.right
    return {name: round(right[name] / totals[name], 3) for name in sorted(totals)}


def list_groups(example: DrawnExample) -> list[str]:
    """Return the groups that an example counts in."""
    task, (height, width) = example.kind
    if example.edit:
        return [task, f"{task}: {example.edit}"]
    content = example.target.content
    number = "one group" if len(content.groups) == 1 else f"two groups, {content.relation}"
    shapes = sum(group.count for group in content.groups)
    return [task, f"{task}: {number}", f"{task}: {shapes} shapes", f"{task}: {width}x{height}"]


def contact_sheet(judged: Sequence[JudgedPicture]) -> Image.Image:
    """Return some pictures on one sheet, each above its prompt; wrong ones are in red."""
    each = SHOWN // len(TASKS)
    chosen = [
        one for task in TASKS for one in [x for x in judged if x.example.kind[0] == task][:each]
    ]
    rows = -(-len(chosen) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * CELL, max(1, rows) * (CELL + 2 * LINE)), "white")
    pen = ImageDraw.Draw(sheet)
    for index, one in enumerate(chosen):
        left, top = index % COLUMNS * CELL, index // COLUMNS * (CELL + 2 * LINE)
        picture = Image.fromarray(one.pixels)
        picture.thumbnail((CELL - 8, CELL - 8))
        sheet.paste(picture, (left, top))
        text = one.example.text
        fill = "black" if one.verdict.right else "red"
        pen.text((left, top + CELL), text[:42], fill=fill)
        pen.text((left, top + CELL + LINE), text[42:84], fill=fill)
    return sheet
