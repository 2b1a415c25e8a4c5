"""Judge the pictures that a server draws and edits through its routes.

    python -m cookbook.ming_mini_2.image.evaluate --url http://127.0.0.1:8000 --out report.json

The prompts are held out: no training has their content. The rule is that of `judge`. Writes the
share of right pictures of each kind, what was wrong with the others, and the seconds of a picture;
`--sheet` shows some of them. Fails if a share is below its bound.
"""

import argparse
import base64
import io
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from cookbook.ming_mini_2.image.drawing import draw_picture
from cookbook.ming_mini_2.image.examples import TASKS, DrawnExample, Task
from cookbook.ming_mini_2.image.held_out import (
    JudgedPicture,
    contact_sheet,
    held_out_examples,
    judge_example,
    summarize,
)
from measurement.environment import fingerprint

BOUNDS: dict[Task, float] = {"draw": 0.7, "edit": 0.7}
"""The least share of right pictures."""
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class ServedPicture:
    """A judged picture and the seconds from request to answer."""

    judged: JudgedPicture
    seconds: float


class ImageClient:
    """Asks a server for pictures of `seed`, at its own number of steps unless one is given."""

    def __init__(self, url: str, seed: int, steps: int | None) -> None:
        self._fields = {"seed": seed} | ({} if steps is None else {"steps": steps})
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS)

    def draw(self, example: DrawnExample) -> ServedPicture:
        """Have one example drawn, and judge it. Raises `httpx.HTTPStatusError`."""
        started = time.monotonic()
        reply = self._edit(example) if example.source else self._generate(example)
        seconds = time.monotonic() - started
        reply.raise_for_status()
        content = base64.b64decode(reply.json()["data"][0]["b64_json"])
        pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
        return ServedPicture(
            JudgedPicture(example, pixels, judge_example(pixels, example)), seconds
        )

    def _generate(self, example: DrawnExample) -> httpx.Response:
        height, width = example.target.size
        body = {"prompt": example.text, "size": f"{width}x{height}", **self._fields}
        return self._client.post("/v1/images/generations", json=body)

    def _edit(self, example: DrawnExample) -> httpx.Response:
        assert example.source is not None
        file = io.BytesIO()
        Image.fromarray(draw_picture(example.source)).save(file, "PNG")
        form = {"prompt": example.text} | {name: str(one) for name, one in self._fields.items()}
        files = {"image": ("picture.png", file.getvalue(), "image/png")}
        return self._client.post("/v1/images/edits", data=form, files=files)


def evaluate(client: ImageClient, count: int, at_a_time: int) -> list[ServedPicture]:
    """Have `count` held-out examples of each task drawn."""
    examples = [one for task in TASKS for one in held_out_examples(task, count)]
    with ThreadPoolExecutor(at_a_time) as pool:
        return list(pool.map(client.draw, examples))


def build_report(served: Sequence[ServedPicture]) -> dict[str, Any]:
    """Return the report as JSON."""
    judged = [one.judged for one in served]
    seconds = [one.seconds for one in served]
    wrong = [
        {"prompt": one.example.text, "problems": list(one.verdict.problems)}
        for one in judged
        if not one.verdict.right
    ]
    return {
        "pictures": len(judged),
        "right": summarize(judged),
        "seconds_median": round(float(np.median(seconds)), 2),
        "seconds_max": round(max(seconds), 2),
        "wrong": wrong,
    }


def find_failures(report: dict[str, Any]) -> list[str]:
    """Return the bounds that a report does not meet."""
    shares = report["right"]
    return [
        f"{task}: {shares[task]} is below {bound}"
        for task, bound in BOUNDS.items()
        if shares[task] < bound
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate, write the report, and fail below a bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sheet", type=Path, help="a PNG file with some of the pictures")
    parser.add_argument("--count", type=int, default=100, help="examples of each task")
    parser.add_argument("--at-a-time", type=int, default=1, help="requests at a time")
    parser.add_argument("--steps", type=int, help="instead of the server's default")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(arguments)
    client = ImageClient(args.url, args.seed, args.steps)
    served = evaluate(client, args.count, args.at_a_time)
    report = build_report(served) | {"environment": fingerprint()}
    args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if args.sheet:
        contact_sheet([one.judged for one in served]).save(args.sheet)
    print(json.dumps({name: value for name, value in report.items() if name != "wrong"}, indent=1))
    failures = find_failures(report)
    print("\n".join(failures) or "every bound is met")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
