"""What an import of the package loads, and what the package says of itself."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import sglang_omni

ROOT = Path(__file__).parents[3]


def loaded_modules(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["Omni", "AsyncOmni"])
def test_the_python_api_loads_no_web_framework(name: str) -> None:
    loaded = loaded_modules(f"from sglang_omni import {name}")
    assert "sglang_omni.serving.server" in loaded
    assert not loaded & {"fastapi", "starlette", "uvicorn", "torch", "sglang"}


def test_the_package_alone_loads_nothing_of_its_own() -> None:
    loaded = loaded_modules("import sglang_omni")
    assert {name for name in loaded if name.startswith("sglang_omni")} == {"sglang_omni"}
    assert not loaded & {"numpy", "pydantic", "asyncio"}


def test_engine_processes_do_not_load_the_python_api() -> None:
    loaded = loaded_modules("import sglang_omni.engines.runtime.engine_main")
    assert not any(name.startswith("sglang_omni.entrypoints") for name in loaded)


def test_the_package_has_a_version_and_types() -> None:
    assert sglang_omni.__version__ == version("sglang_omni")
    assert (ROOT / "sglang_omni" / "py.typed").exists()
    with pytest.raises(AttributeError, match="no_such"):
        _ = sglang_omni.no_such
