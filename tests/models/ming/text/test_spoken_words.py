"""What the talker is asked to say, over every route that speaks."""

from collections.abc import Callable, Iterator

import pytest

from tests.entrypoints.http.fake import Served
from tests.entrypoints.http.speaking import ROUTES, serving_speech, speak_over


@pytest.fixture(scope="module")
def speaking() -> Iterator[Served]:
    with serving_speech() as served:
        yield served


@pytest.fixture(params=ROUTES)
def say(request: pytest.FixtureRequest, speaking: Served) -> Callable[[str], str]:
    """Has a text spoken over one route; what the talker was asked, piece by piece."""
    return lambda text: "|".join(speak_over(request.param, speaking, text))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("您好，您这次登录用的验证码是下面这一串数字。839201。请不要告诉别人。", "八十三万九千"),
        ("现在请您记下这一次登录的验证码，谢谢您的配合。839201", "八十三万九千"),
        ("今天上海白天的最高气温比昨天要高不少哦，达到。25°C。", "二十五摄氏度"),
        ("这一件衣服的价格现在已经比昨天便宜多了哦！HK$20。", "二十港元"),
        ("我最近在看的那一款新手机的名字大概叫做。iPhone 15 Pro，", "十五"),
        ("Your new code for the log-in of today is this one. 839201.", "eight hundred thirty-nine"),
        ("他说了下面这一句英文，请跟着我读一遍。There are 12 apples in the box.", "twelve"),
    ],
)
def test_numbers_are_read_in_the_language_around_them(
    say: Callable[[str], str], text: str, number: str
) -> None:
    pieces = say(text)
    assert number in pieces
    assert "|" in pieces, "in one piece with words the number proves nothing"


def test_a_number_before_the_first_word_is_read_in_its_language(speaking: Served) -> None:
    asked = speak_over("speech", speaking, "839201。12345678。这就是您这次登录用的验证码。")
    assert asked[0].startswith("八十三万")


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("访问https://example.com/a?b=1有货的店。", "访问example点com斜杠a问号b等于一有货的店。"),
        ("见https://a.cn/b。然后回来吧。", "见a点CN斜杠b。然后回来吧。"),
        ("见“https://a.cn/b”再回来吧。", "见“a点CN斜杠b”再回来吧。"),
        ("一共有１２３个ＡＢＣ吗？是：对！", "一共有一百二十三个ABC吗?是：对!"),
        ("涨了９９．５％，现在是￥５０。", "涨了百分之九十九点五，现在是五十元。"),
        (
            "I have １２３ ＡＢＣ for ￥５０.",
            "I have one hundred twenty-three ABC for fifty yen.",
        ),
        ("价格是HK$20，或者NT$3万。", "价格是二十港元，或者三万新台币。"),
        ("It costs HK$20 now.", "It costs twenty Hong Kong dollars now."),
        ("a", "ay."),
        ("B.", "bee."),
        ("hi", "hi."),
    ],
)
def test_what_is_asked_of_the_talker(say: Callable[[str], str], text: str, spoken: str) -> None:
    assert say(text).replace("|", "") == spoken
