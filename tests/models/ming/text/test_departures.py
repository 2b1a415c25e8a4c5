"""Where the product departs from the reference on purpose: what it says, and what we say."""

import pytest

from sglang_omni.models.ming.text.accumulate import collect_fragments
from sglang_omni.models.ming.text.chinese import spell_out_chinese
from sglang_omni.models.ming.text.english import spell_out_english
from sglang_omni.models.ming.text.front import split_fragments
from sglang_omni.models.ming.text.prepare import prepare
from sglang_omni.models.ming.text.rules import PRODUCT, REFERENCE

ENGLISH = {
    "ordinals": [
        ("the 1st test", "the one test", "the first test"),
        ("the 22nd", "the twenty-two", "the twenty-second"),
        ("the 101st", "the one hundred and one", "the one hundred and first"),
    ],
    "units": [
        ("at 10 a.m. now", "at ten amperes .m. now", "at ten a.m. now"),
        ("3 a day", "three amperes day", "three a day"),
        ("5 A fuse", "five amperes fuse", "five amperes fuse"),
        (
            "the 1990s",
            "the one thousand, nine hundred ninety seconds",
            "the nineteen nineties",
        ),
    ],
    "signs": [
        ("is -2.75", "is - two point seven five", "is minus two point seven five"),
        ("-40°C", "- forty degrees celsius", "minus forty degrees celsius"),
        ("3-5 days", "three minus five days", "three to five days"),
        (
            "call 555-1234",
            "call five hundred fifty-five minus one thousand, two hundred thirty-four",
            "call five hundred fifty-five - one thousand, two hundred thirty-four",
        ),
    ],
    "currencies": [
        ("for HK$20 now", "for HK twenty dollars now", "for twenty Hong Kong dollars now"),
        ("US$1", "US one dollar", "one US dollar"),
        ("A$13.5", "A thirteen point five dollars", "thirteen point five Australian dollars"),
        ("C$2", "C two dollars", "two Canadian dollars"),
        ("NT$3", "NT three dollars", "three New Taiwan dollars"),
        ("S$4", "S four dollars", "four Singapore dollars"),
        ("NZ$5", "NZ five dollars", "five New Zealand dollars"),
        ("R$1", "R one dollar", "one Brazilian real"),
        ("MX$6", "MX six dollars", "six Mexican pesos"),
        ("HK$2 million", "HK two dollars million", "two million Hong Kong dollars"),
        ("USA$5", "USA five dollars", "USA five dollars"),
        ("¥5", "¥ five", "five yuan"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reference", "product"), [case for rule in ENGLISH.values() for case in rule]
)
def test_english_rule(text: str, reference: str, product: str) -> None:
    assert spell_out_english(text, REFERENCE) == reference
    assert spell_out_english(text, PRODUCT) == product


def test_a_chinese_score_is_not_a_time() -> None:
    text = "比赛结果是3:2，时间为12:05"
    assert spell_out_chinese(text, REFERENCE) == "比赛结果是三点零二分，时间为十二点零五分"
    assert spell_out_chinese(text, PRODUCT) == "比赛结果是三比二，时间为十二点零五分"


@pytest.mark.parametrize(
    ("text", "reference", "product"),
    [
        ("价格HK$20", "价格HK二十美元", "价格二十港元"),
        ("共US$3万", "共US三万美元", "共三万美元"),
        ("共A$2", "共A二美元", "共二澳元"),
        ("共C$2", "共C二美元", "共二加元"),
        ("共NT$2", "共NT二美元", "共二新台币"),
        ("共S$2", "共S二美元", "共二新加坡元"),
        ("共NZ$2", "共NZ二美元", "共二新西兰元"),
        ("共R$2", "共R二美元", "共二雷亚尔"),
        ("共MX$2", "共MX二美元", "共二墨西哥比索"),
        ("USA$2元", "USA二美元元", "USA二美元元"),
    ],
)
def test_a_chinese_amount_in_somebodys_dollars(text: str, reference: str, product: str) -> None:
    assert spell_out_chinese(text, REFERENCE) == reference
    assert spell_out_chinese(text, PRODUCT) == product


@pytest.mark.parametrize("following", ["有货", "です", "㐀", "。然后", "”说", "（网站）"])
def test_a_link_ends_where_chinese_or_japanese_begins(following: str) -> None:
    for link in ("https://example.com", "https://a.cn/b/", "www.a.cn/b?c=d"):
        assert prepare(f"见{link}{following}") == f"见{following}"


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("１２３ＡＢｚ", "123ABz"),
        ("３．５％＋２＝５", "3.5%+2=5"),
        ("１２：３０，－５℃", "12:30，-5℃"),
        ("是：对。吗？好！一；二，三（四）", "是：对。吗？好！一；二，三（四）"),
        ("＄５和￥６", "$5和¥6"),
    ],
)
def test_full_width_figures_letters_and_signs_are_their_ascii_ones(
    text: str, prepared: str
) -> None:
    assert prepare(text) == prepared


def test_zero_alone_is_spoken() -> None:
    """The reference looks for the digits 1 to 9 only."""
    assert [f.text for f in collect_fragments("0", REFERENCE)] == []
    assert split_fragments("0") == ["zero"]


def test_a_group_without_content_does_not_end_the_speech() -> None:
    """The reference crashes on the text after it (its buffer stays a string)."""
    text = "............. hello there"
    assert [f.text for f in collect_fragments(text, REFERENCE)] == [" hello there"]
    assert split_fragments(text) == ["hello there"]


def test_an_abbreviation_does_not_end_a_sentence() -> None:
    text = "Yesterday Dr. Smith came at 10 a.m. to St. Mary's, e.g. with Mr. Jones."
    assert next(f.text for f in collect_fragments(text, REFERENCE)) == "Yesterday Dr."
    assert split_fragments(text) == [
        "Yesterday Doctor Smith came at ten AM to Saint Mary's, "
        "for example with Mister Jones."
    ]  # fmt: skip


def test_an_abbreviation_at_the_end_of_a_sentence_still_ends_it() -> None:
    assert prepare("He left at 5 p.m. She slept.") == "He left at 5 PM. She slept."
    assert prepare("He left at 5 p.m.") == "He left at 5 PM."
    assert prepare("It is on Main St. The door is red.") == "It is on Main St. The door is red."


def test_a_link_is_removed_whole() -> None:
    """The reference ends a sentence inside it, and reads the rest aloud."""
    text = "Read all about it at https://example.com/a?b=1, it is very good."
    assert next(f.text for f in collect_fragments(text, REFERENCE)).endswith("https://example.")
    assert split_fragments(text) == ["Read all about it at , it is very good."]


def test_lines_are_not_glued_together() -> None:
    """The reference says "linesecond"."""
    text = "First line\nsecond line\n\nA new paragraph"
    assert "linesecond" in next(iter(collect_fragments(text, REFERENCE))).text
    assert split_fragments(text) == ["First line, second line.", "A new paragraph"]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("**Bold** and *soft* and `code`.", ["Bold and soft and code."]),
        ("# Title\n\n- one\n- two", ["Title. one, two"]),
        ("a [link](http://x.yz) here", ["a link here"]),
        ("before\n```python\nprint(1)\n```\nafter", ["before. after"]),
        ("rockets 🚀👨‍👩‍👧 fly", ["rockets fly"]),
        ("2 * 3 and 2*3", ["two * three and two * three"]),
        ("B2B and H2O", ["B two B and H two O"]),
        ("从$5涨到$6", ["从五美元涨到六美元"]),
    ],
)
def test_markup_is_resolved_before_cutting(text: str, spoken: list[str]) -> None:
    assert split_fragments(text) == spoken
