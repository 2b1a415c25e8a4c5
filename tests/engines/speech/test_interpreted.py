"""The kernel tests under Triton's interpreter, where there is no GPU to run them on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch


@pytest.mark.interpreted
@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run as they are")
def test_every_kernel_gives_what_its_plain_rule_gives() -> None:
    # Triton decides at import whether it interprets, so the tests run in a process of their own.
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent / "fast"), "-q"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "." * 20 in done.stdout, "the kernel tests were skipped"
