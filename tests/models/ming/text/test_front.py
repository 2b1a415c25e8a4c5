"""The whole front end: bounds, numerals, time, threads and imports."""

import random
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sglang_omni.models.ming.text.front import split_fragments
from sglang_omni.models.ming.text.limits import MAX_FRAGMENT_CHARACTERS, MAX_FRAGMENT_UNITS
from sglang_omni.models.ming.text.tokens import count_units, is_speakable
from tests.testing.golden import cases, load_case

PATHOLOGICAL = {
    "digits": "7" * 4096,
    "digits after Chinese": "中" + "7" * 4095,
    "emoji": "😀" * 4096,
    "blanks": " " * 4096,
    "lines": "a\n" * 2048,
    "commas": "1," * 2048,
    "single numbers": "中1" * 2048,
    "one word": "a" * 4096,
    "dots": "." * 4096,
    "dotted letters": "A." * 2048,
    "dollars": "$" * 4096,
    "open images": "![" * 2048,
    "open links": "[" * 4096,
    "fractions": "1/" * 2048,
    "hyphens": "1-" * 2048,
    "times": "中" + "1:" * 2047,
    "decimals": "1." * 2047 + "%",
    "another script": "a" + "ท" * 4095,
    "addresses": "http://" * 585,
    "words": "word " * 819,
    "characters": "字" * 4096,
    "quotes": '中5"' * 1365,
    "asterisks": "*_ " * 1365,
}


def assert_within_bounds(found: Iterable[str]) -> None:
    for fragment in found:
        assert 1 <= count_units(fragment) <= MAX_FRAGMENT_UNITS, fragment
        assert len(fragment) <= MAX_FRAGMENT_CHARACTERS
        assert fragment == fragment.strip()


@pytest.mark.parametrize("text", PATHOLOGICAL.values(), ids=PATHOLOGICAL.keys())
def test_pathological_text_takes_bounded_time_and_stays_in_bounds(text: str) -> None:
    began = time.process_time()
    found = split_fragments(text)
    # An exponential pattern would take ages; the slowest here takes 1 s, and 4 on a crowded core.
    assert time.process_time() - began < 10.0
    assert_within_bounds(found)
    assert found or not is_speakable(text)


def test_golden_texts_give_fragments_in_bounds() -> None:
    for name in cases("text_front", "strings"):
        for entry in load_case(name).info["cases"]:
            found = split_fragments(entry["text"])
            assert_within_bounds(found)
            assert bool(found) == (bool(entry["segments_string"]) or entry["text"] == "0")


def test_random_text_gives_fragments_in_bounds() -> None:
    rng = random.Random(4)
    pieces = ["word", " ", "3.14", "今天", "。", ", ", "\n", "$5", "50%", "-", "1st", "😀", "½"]
    pieces += ["Dr. ", "**", "`", "http://a.b/c ", "9:30", "2", "个", "“", '"', "\\", "!", "é"]
    for _ in range(300):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(80)))
        found = split_fragments(text)
        assert_within_bounds(found)
        assert not any(char in "0123456789" for fragment in found for char in fragment), found


@pytest.mark.parametrize("text", ["", "   ", "...!?，。", "😀 🚀", "\n\n", "***"])
def test_nothing_to_speak_gives_nothing(text: str) -> None:
    assert split_fragments(text) == []


def test_fragments_keep_the_order_and_every_word() -> None:
    words = [f"w{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(300)]
    assert " ".join(split_fragments(" ".join(words))).replace("。", "").split() == words


def test_numbers_grown_into_words_are_cut_again() -> None:
    found = split_fragments(" ".join(["1999"] * 30))
    assert len(found) > 1
    assert_within_bounds(found)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("会议在2024-03-15下午3:00开始", "会议在二零二四年三月十五日下午三点开始"),
        ("2个人等了3-5天，第2个先走", "两个人等了三到五天，第二个先走"),
        ("速度是120km/h，气温-5℃", "速度是一百二十公里，气温零下五摄氏度"),
        ("请拨打13812345678", "请拨打幺三八幺二三四五六七八"),
        ("下降了-2.5%", "下降了负百分之二点五"),
        ("编号12345678901234567", "编号一二三四五六七八九零一二三四五六七"),
    ],
)
def test_chinese_in_context(text: str, spoken: str) -> None:
    assert "".join(split_fragments(text)) == spoken


def test_a_sentence_takes_less_than_two_milliseconds() -> None:
    texts = ["The 1st test of 2.5 kg at 10 a.m. cost $12.99.", "2024年3月15日上午9:30，气温是-3℃。"]
    for text in texts:
        best = min(_seconds(text) for _ in range(5))
        assert best < 0.002, (text, best)


def _seconds(text: str) -> float:
    began = time.process_time()
    split_fragments(text)
    return time.process_time() - began


def test_threads_get_what_one_thread_gets() -> None:
    texts = [f"共有{n}人，编号X{n}-{n * 7}。The {n}th of {n}." for n in range(2, 42)]
    alone = [split_fragments(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(split_fragments, texts)) == alone


def test_the_api_process_may_import_it() -> None:
    """The reference's front end alone loads grammars, and only when it is asked for."""
    code = (
        "import sys; import sglang_omni.models.ming.text.front as front, "
        "sglang_omni.pipeline.segment, sglang_omni.pipeline.decode, "
        "sglang_omni.models.ming.prompt.tokenizer; front.split_fragments('5 km. 第5天。'); "
        "heavy = ('torch', 'transformers', 'sglang', 'wetext', 'inflect'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
