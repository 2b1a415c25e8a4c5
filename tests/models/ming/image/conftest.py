"""The image folders of the tiny checkpoint, loaded once."""

from pathlib import Path

import pytest
import torch

from sglang_omni.models.ming.image.loading import ImageModules, load_image_modules
from tests.testing.golden import file_of

TINY_IMAGES = "image/tiny_image_checkpoint"


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    return file_of(TINY_IMAGES)


@pytest.fixture(scope="session")
def modules(checkpoint: Path) -> ImageModules:
    """Everything in float32 on the CPU."""
    return load_image_modules(checkpoint, torch.device("cpu"), torch.float32)
