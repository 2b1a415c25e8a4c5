"""The recipe's shell program says what is wrong, and its options exist."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.testing.command_help import read_options

RECIPE = Path(__file__).parents[4] / "cookbook/ming_mini_2/voices/speak_recipe.sh"


def run_recipe(**settings: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **settings}
    return subprocess.run(["bash", str(RECIPE)], env=environment, capture_output=True, text=True)


def test_a_missing_folder_and_an_unknown_step_are_named(tmp_path: Path) -> None:
    assert "OUT: a folder for the results" in run_recipe(STEP="1").stderr
    done = run_recipe(OUT=str(tmp_path), STEP="9")
    assert done.returncode == 2
    assert "STEP must be 1, 2, 3 or 4, not 9" in done.stderr


@pytest.mark.parametrize("program", ["corpus", "train_vae", "train_talker", "pack"])
def test_programs_have_every_option_of_the_recipe(program: str) -> None:
    known = read_options(f"cookbook.ming_mini_2.voices.{program}")
    script = RECIPE.read_text(encoding="utf-8")
    assert re.search(rf"\b{program}\b", script)
    wanted = {
        "corpus": {"--output", "--hours", "--seconds", "--form", "--processes", "--chunk-clips"},
        "train_vae": {"--corpus", "--seconds", "--pause", "--split-bytes", "--start", "--seed"},
        "train_talker": {"--corpus", "--vae", "--pause", "--split-bytes", "--start", "--seed"},
        "pack": {"--weights", "--output", "--form"},
    }[program]
    assert wanted <= known
    assert wanted <= set(re.findall(r"--[a-z-]+", script))
