"""One way to decode: a request may ask for a smaller picture than the rules allow, not a larger."""

import pytest

from sglang_omni.media.decode import decode_medium, narrow_budget
from sglang_omni.media.limits import PixelBudget
from tests.media.files import LIMITS, RULES, encoded, picture

OWN = PixelBudget(32, 4096, 65_536)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, OWN),
        (PixelBudget(32, 4096, 16_384), PixelBudget(32, 4096, 16_384)),
        (PixelBudget(32, 4096, 262_144), OWN),
        (PixelBudget(32, 1024, 2048), PixelBudget(32, 1024, 2048)),
    ],
)
def test_a_request_narrows_the_rules(asked: PixelBudget | None, given: PixelBudget) -> None:
    assert narrow_budget(OWN, asked) == given


def test_a_picture_has_the_size_that_was_asked_for() -> None:
    file = encoded(picture(size=(512, 256)))
    whole, _ = decode_medium("image", (file,), LIMITS, RULES)
    small, _ = decode_medium("image", (file,), LIMITS, RULES, PixelBudget(32, 4096, 32_768))
    assert whole.shape == (1, 256, 512, 3)
    assert small.shape == (1, 128, 256, 3)
