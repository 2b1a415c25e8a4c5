"""The page's modules in Node.js, where there is one: they parse, and those without a page work."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sglang_omni.entrypoints.playground.routes import FOLDER

MODULES = sorted(path.name for path in FOLDER.glob("*.js"))
TESTS = Path(__file__).parent / "modules.test.mjs"


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies beside a note that says what browsers know: these are modules, not scripts."""
    made = tmp_path_factory.mktemp("modules")
    for name in MODULES:
        shutil.copy(FOLDER / name, made)
    shutil.copy(TESTS, made)
    (made / "package.json").write_text('{"type": "module"}')
    return made


def run(*command: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_parses(node: str, folder: Path) -> None:
    for name in MODULES:
        run(node, "--check", name, folder=folder)


def test_modules_that_need_no_page_work(node: str, folder: Path) -> None:
    run(node, "--test", TESTS.name, folder=folder)
