"""The options that a program names in its help."""

import io
import re
import runpy
import sys
import warnings
from contextlib import redirect_stdout
from unittest.mock import patch

import pytest

OPTION = re.compile(r"--[a-z][a-z-]+")


def read_options(module: str) -> set[str]:
    """Return the options that `python -m MODULE --help` prints.

    It runs in this process: one of its own would import PyTorch once more, for ten seconds.
    """
    printed = io.StringIO()
    with (
        patch.object(sys, "argv", [module, "--help"]),
        redirect_stdout(printed),
        # The module may be imported already; that it then runs a second time is no fault.
        warnings.catch_warnings(action="ignore", category=RuntimeWarning),
        pytest.raises(SystemExit) as ended,
    ):
        runpy.run_module(module, run_name="__main__")
    assert not ended.value.code
    return set(OPTION.findall(printed.getvalue()))
