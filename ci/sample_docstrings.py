"""Print docstrings of the package drawn at random, to read as a stranger would.

`python ci/sample_docstrings.py --count 40 --seed 1`
"""

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random

PACKAGE = Path(__file__).parents[1] / "sglang_omni"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def find_docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the place (`path:line`) and the text of each docstring in the files of a folder."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(folder.parent)}:{getattr(node, 'lineno', 1)}", text


def main() -> None:
    """Print the sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=40, help="number of docstrings (default 40)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default 1)")
    args = parser.parse_args()
    docstrings = list(find_docstrings(PACKAGE))
    for place, text in sorted(Random(args.seed).sample(docstrings, args.count)):
        print(f"{place}\n{text}\n")


if __name__ == "__main__":
    main()
