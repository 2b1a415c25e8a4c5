"""Say what makes questions for a place hard: look-alikes, and choices before the picture.

    python -m cookbook.ming_mini_2.thinker.evaluation.suite --kinds picture --count 200 \
        --clips DIR --texts FILE --answers answers.jsonl
    python -m cookbook.ming_mini_2.thinker.evaluation.look_alikes answers.jsonl

A look-alike of a shape has its colour or its kind, but not both.
"""

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ASKED = re.compile(r"the (\w+) (\w+)\?")
ORDER = {True: "picture first", False: "question first"}
Answer = Mapping[str, Any]
"""A line of the file that `suite` writes."""


def count_look_alikes(answer: Answer) -> int | None:
    """Return the look-alikes of the shape that a question asks for; None if it names none."""
    found = ASKED.search(answer["question"])
    if found is None or [*found.groups()] not in [shape[:2] for shape in answer["shapes"]]:
        return None
    colour, kind = found.groups()
    return sum((shape[0] == colour) != (shape[1] == kind) for shape in answer["shapes"])


def tabulate(answers: Iterable[Answer]) -> dict[str, tuple[int, int]]:
    """Return the right answers and all answers of each group of questions for a place."""
    table: dict[str, tuple[int, int]] = {}
    for answer in answers:
        row = answer["row"]
        if row not in ("picture_where", "picture_choice"):
            continue
        names = [f"{row}, {ORDER[answer['media_first']]}"]
        if (count := count_look_alikes(answer)) is not None:
            names.append(f"{row}, look-alikes: {count if count < 3 else 'more'}")
        for name in names:
            right, all_ = table.get(name, (0, 0))
            table[name] = right + answer["right"], all_ + 1
    return dict(sorted(table.items()))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", type=Path)
    lines = parser.parse_args().answers.read_text(encoding="utf-8").splitlines()
    for name, (right, all_) in tabulate(map(json.loads, lines)).items():
        print(f"{name}: {right} of {all_}, {right / all_:.0%}")


if __name__ == "__main__":
    main()
