"""One command builds both halves: its steps are programs that exist, with options they take."""

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cookbook.ming_mini import build


@pytest.fixture
def args() -> argparse.Namespace:
    return argparse.Namespace(
        work=Path("/work"),
        output=Path("/out"),
        hours=1.0,
        cores=5,
        seed=3,
        lexicon=Path("/words"),
        vae_seconds=1.0,
        talker_seconds=2.0,
        thinker_seconds=3.0,
    )


def test_every_step_takes_the_options_it_is_given(
    args: argparse.Namespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (build.corpus(args), *build.speaking(args)):
        name = command[2]
        monkeypatch.setattr(sys, "argv", [name, "--help"])
        with pytest.raises(SystemExit):
            importlib.import_module(name).main()
        known = capsys.readouterr().out
        assert all(f"{word} " in known for word in command if word.startswith("--")), command


def test_the_recipe_knows_every_setting(args: argparse.Namespace) -> None:
    recipe = build.RECIPE.read_text()
    assert subprocess.run(["bash", "-n", str(build.RECIPE)]).returncode == 0
    settings = build.thinking(args)
    assert all(f"${{{name}:" in recipe for name in settings)
    assert settings["CORES"] == "3"
    assert sys.executable in build.program("pack")
