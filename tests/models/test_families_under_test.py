"""The suites of the pipeline and the API run on any family, and this is how it is found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.family_under_test import SUITES, VARIABLE

ROOT = Path(__file__).parents[2]
REPORT = """
import json
from importlib.metadata import entry_points
from sglang_omni.models.registry import FAMILIES, GROUP
from tests.testing import family
toy = "ToyForConditionalGeneration"
installed = [entry.name for entry in entry_points(group=GROUP)]
print(json.dumps([type(family.FAMILY).__name__, toy in FAMILIES, toy in installed]))
"""


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, ["MingFamily", False, False]),
        ("toy", ["ToyFamily", True, False]),
        ("toy-entry-point", ["ToyFamily", False, True]),
        ("tests.testing.family_under_test:install_toy", ["ToyFamily", False, True]),
    ],
)
def test_a_family_is_found_by_the_registry_or_by_an_entry_point(
    name: str | None, expected: list[object]
) -> None:
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    chosen = {} if name is None else {VARIABLE: name}
    done = subprocess.run(
        [sys.executable, "-c", REPORT], cwd=ROOT, env={**env, **chosen}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_imports_no_family(suite: str) -> None:
    files = list((ROOT / suite).rglob("*.py"))
    assert files
    text = {path: path.read_text(encoding="utf-8") for path in files}
    assert [path.name for path, code in text.items() if "models.ming" in code] == []
