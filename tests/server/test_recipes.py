"""Every block of the recipes works as it stands, or is checked as far as it can be here."""

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from sglang_omni.entrypoints.cli.main import build_parser
from tests.server.running import RunningServer

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "cookbook" / "recipes").glob("*.md"))


@dataclass(frozen=True)
class Block:
    """A block of a recipe: its language, whether it is run, and where it stands."""

    recipe: str
    line: int
    language: str
    how: str
    text: str

    def __str__(self) -> str:
        return f"{self.recipe}:{self.line}"


def blocks() -> list[Block]:
    found = []
    for path in RECIPES:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\S*) ?(\S*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text[: match.start()].count("\n") + 2
            found.append(Block(path.name, line, *match.groups()))
    return found


BLOCKS = blocks()


@pytest.mark.extended
@pytest.mark.parametrize("block", [one for one in BLOCKS if one.how == "run"], ids=str)
def test_a_block_runs(block: Block, server: RunningServer, tmp_path: Path) -> None:
    address = server.url.removeprefix("http://")
    text = block.text.replace("127.0.0.1:8000", address)
    # What a command takes for the server when it is not told.
    text = re.sub(r"(benchmarks\.evaluation\.evaluate (?!--list))", rf"\1--url {server.url} ", text)
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": binaries, "PYTHONPATH": str(ROOT)}
    command = ["bash", "-euo", "pipefail", "-c", text]
    if block.language == "python":
        command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    # A search through the message of a command that is meant to fail gives the status of both.
    meant = "unrecognized arguments" in text and "unrecognized arguments" in done.stdout
    assert done.returncode == 0 or meant, f"{block}: {done.stdout[-800:]}{done.stderr[-1500:]}"


def test_every_block_says_how_it_is_tested() -> None:
    assert len(RECIPES) >= 6
    assert len(BLOCKS) >= 20
    assert {one.language for one in BLOCKS} == {"bash", "python"}
    assert {one.how for one in BLOCKS} == {"run", "gpu"}


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.how == "gpu"], ids=str)
def test_a_block_that_needs_cards_is_well_formed(block: Block) -> None:
    if block.language == "python":
        ast.parse(block.text)
        return
    done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    for line in block.text.replace("\\\n", " ").splitlines():
        check_flags(shlex.split(line))


# Of sglang-router 0.3.2, which is no dependency: `ci/stage.sh packages` runs it.
ROUTER_FLAGS = {"--host", "--port", "--policy", "--worker-urls"}


def check_flags(words: list[str]) -> None:
    """Every flag of a command is one that it has."""
    if words[0] == "sgl-omni":
        build_parser().parse_args(words[1:])
        return
    assert words[:2] == ["python", "-m"], words
    known = flags_of(words[2])
    assert {word for word in words[3:] if word.startswith("--")} <= known, words


def messages() -> list[str]:
    """What troubleshooting.md quotes, `...` for what differs from case to case."""
    text = (ROOT / "cookbook" / "recipes" / "troubleshooting.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ``?(.+?)``? \| ", text, re.MULTILINE)


@cache
def templates() -> list[re.Pattern[str]]:
    """Every text in the code that is long enough to be a message, as what it can become."""
    files = [*(ROOT / "sglang_omni").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    texts = [list(pieces(node)) for node in nodes]
    fixed = [text for text in texts if len("".join(filter(None, text))) > 12]
    return [
        re.compile("".join(".+" if piece is None else re.escape(piece) for piece in text))
        for text in fixed
    ]


def pieces(node: ast.AST) -> Iterator[str | None]:
    """The pieces of a text, None for what is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for value in node.values:
            yield str(value.value) if isinstance(value, ast.Constant) else None


@pytest.mark.parametrize("message", messages())
def test_a_message_of_troubleshooting_is_one_that_the_code_has(message: str) -> None:
    assert any(template.fullmatch(message) for template in templates()), message


def test_messages_are_found_and_told_from_others() -> None:
    assert len(messages()) >= 30
    for wrong in ("the server is shut down", "... is not there: not a checkpoint folder"):
        assert not any(template.fullmatch(wrong) for template in templates())


@cache
def flags_of(module: str) -> set[str]:
    """The flags of a command, by its own help; SGLang's by its parser, which loads nothing."""
    if module == "sglang_router.launch_router":
        return ROUTER_FLAGS
    if module == "sglang.launch_server":
        parser = ArgumentParser()
        importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
        return set(parser._option_string_actions)
    command = [sys.executable, "-m", module]
    if module == "benchmarks.evaluation.gates":
        return {flag for mode in ("calibrate", "check") for flag in _help([*command, mode])}
    return _help(command)


def _help(command: list[str]) -> set[str]:
    done = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return set(re.findall(r"--[a-z][\w-]*", done.stdout))
