"""Modules of the tiny checkpoint, loaded once."""

import pytest
import torch

from sglang_omni.models.ming.speech.talker import Talker, load_talker
from tests.testing.golden import TINY


@pytest.fixture(scope="session")
def talker() -> Talker:
    """The tiny talker in float32 on the CPU."""
    return load_talker(TINY / "talker", torch.device("cpu"), torch.float32)
