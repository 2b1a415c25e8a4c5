"""Compare two runs of `suite` over the same questions, kind by kind.

    python -m cookbook.ming_mini_2.thinker.evaluation.compare \
        --before bf16-*.jsonl --after int4-*.jsonl --out FILE

Each file is what `suite --answers` wrote; several files of a side are one run. For each kind the
report has both accuracies, the points lost, and the questions that only one run answers. Their
numbers decide whether a loss is more than chance: `p` is the exact probability of a difference as
large where both runs are equally good (McNemar's test, two sides).
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from typing import Any

from measurement.environment import fingerprint

MAX_POINTS = 2.0
"""The most points that a kind may lose."""
ALL = "all"
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Two runs over the same questions.

    Attributes:
        items: Number of questions.
        before: Accuracy of the first run, in percent.
        after: Accuracy of the second run, in percent.
        lost: Points of accuracy that the second run lost; negative if it gained some.
        only_before: Questions that only the first run answers.
        only_after: Questions that only the second run answers.
        same_replies: Replies that are the same word for word.
        p: Probability of such a difference between runs that are equally good.
    """

    items: int
    before: float
    after: float
    lost: float
    only_before: int
    only_after: int
    same_replies: int
    p: float


def read_answers(paths: Sequence[Path]) -> list[Answer]:
    """Read the answers of a run, file by file."""
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def compare_kinds(before: Sequence[Answer], after: Sequence[Answer]) -> dict[str, Comparison]:
    """Compare the answers of each kind, and of all.

    Raises:
        ValueError: The runs were asked different questions.
    """
    kinds: dict[str, list[tuple[Answer, Answer]]] = {}
    for pair in _pair(before, after):
        for kind in (pair[0]["row"], ALL):
            kinds.setdefault(kind, []).append(pair)
    return {kind: _compare(pairs) for kind, pairs in sorted(kinds.items())}


def _pair(before: Sequence[Answer], after: Sequence[Answer]) -> Iterator[tuple[Answer, Answer]]:
    if len(before) != len(after):
        raise ValueError(f"{len(before)} answers cannot be compared with {len(after)}")
    for first, second in zip(before, after, strict=True):
        if any(first[key] != second[key] for key in ("row", "question")):
            raise ValueError(f"{first['question']!r} is not {second['question']!r}")
        yield first, second


def _compare(pairs: Sequence[tuple[Answer, Answer]]) -> Comparison:
    count = len(pairs)
    right = [(bool(first["right"]), bool(second["right"])) for first, second in pairs]
    before, after = (100 * sum(side) / count for side in zip(*right, strict=True))
    only_before, only_after = right.count((True, False)), right.count((False, True))
    same = sum(
        all(first[key] == second[key] for key in ("said", "calls")) for first, second in pairs
    )
    p = sign_test(only_before, only_after)
    return Comparison(count, before, after, before - after, only_before, only_after, same, p)


def sign_test(first: int, second: int) -> float:
    """Return the probability that fair coins fall as unevenly as `first` to `second`, or more."""
    total = first + second
    tail = sum(comb(total, few) for few in range(min(first, second) + 1))
    return min(1.0, 2 * tail / 2**total)


def main() -> int:
    """Print and write the comparison; return 1 if a kind lost more points than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, nargs="+", required=True)
    parser.add_argument("--after", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    kinds = compare_kinds(read_answers(args.before), read_answers(args.after))
    for kind, one in kinds.items():
        print(
            f"{kind:26s}{one.items:6d}{one.before:8.1f}{one.after:8.1f}  lost {one.lost:5.1f}"
            f"  only before {one.only_before:3d}, only after {one.only_after:3d}, p {one.p:.2f}"
        )
    lost = [kind for kind, one in kinds.items() if one.lost > MAX_POINTS]
    print(f"more than {MAX_POINTS:.0f} points lost: {', '.join(lost) or 'none'}")
    if args.out:
        rows = {kind: asdict(one) for kind, one in kinds.items()}
        report = {"environment": fingerprint(), "kinds": rows}
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
