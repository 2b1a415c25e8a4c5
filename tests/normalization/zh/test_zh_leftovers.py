"""No digit and no sign with a meaning is left in Chinese words, and hostile text is linear."""

import random
import re
import time

import pytest

from sglang_omni.normalization.normalizer import build_normalizer
from sglang_omni.normalization.zh.open_words import OPEN_CHARACTERS

NORMALIZER = build_normalizer()
LEFT = re.compile(r"[@#$%&/\\=+<>_^~°£€¥|*²³\u00d7÷≥≤±]|\d")
PIECES = (
    *"0123456789",
    *"@#$%&/\\=+<>_^~°£€¥|*²³\u00d7÷≥≤±.,:-()' ",
    *("年", "个", "元", "第", "a", "x", "kg", "USD", "½", "万", "，", "pm", "①"),
)
REPEATED = ("1", "a", "-", "$", "(", "1-", "1.", "1,", "1:", "1/", "a1", "x²", "²", "①", "½", "1+")


def test_no_sign_is_left() -> None:
    draw = random.Random(11)
    for _ in range(3000):
        written = "中文" + "".join(draw.choices(PIECES, k=6))
        spoken = NORMALIZER.normalize(written, language="zh")
        assert not LEFT.search(spoken), written


@pytest.mark.parametrize("piece", REPEATED)
def test_hostile_text_takes_little_time(piece: str) -> None:
    start = time.process_time()
    NORMALIZER.normalize(piece * (20_000 // len(piece)), language="zh")
    assert time.process_time() - start < 5


def test_open_characters_are_han() -> None:
    assert all("\u4e00" <= character <= "\u9fff" for character in OPEN_CHARACTERS)
    assert set("年月日点到") <= set(OPEN_CHARACTERS)
