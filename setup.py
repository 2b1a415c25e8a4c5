"""The build, as far as pyproject.toml cannot say it: unpack the bundled weights."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKAGE = Path(__file__).parent / "sglang_omni"


class BuildWithWeights(build_py):
    """Copies the package once the weights lie in it; they are packed in a source tree."""

    def run(self) -> None:
        """Unpack, then build as ever."""
        archive = runpy.run_path(str(PACKAGE / "models" / "weights_archive.py"))
        archive["unpack_weights"](PACKAGE / "checkpoints" / "ming-mini")
        # What lies in the package was listed before.
        self.__dict__.pop("data_files", None)
        super().run()


setup(cmdclass={"build_py": BuildWithWeights})
