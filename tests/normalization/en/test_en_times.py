"""Times of day and durations in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("Come at 7:15.", "Come at seven fifteen."),
    ("Come at 7:05 pm.", "Come at seven oh five PM."),
    ("Come at 8:00.", "Come at eight o'clock."),
    ("Come at 8:00 a.m. sharp.", "Come at eight AM sharp."),
    ("The train leaves at 17:40.", "The train leaves at seventeen forty."),
    ("The train leaves at 21:00.", "The train leaves at twenty-one hundred."),
    ("It is 00:20 now.", "It is zero twenty now."),
    ("We open at 10am.", "We open at ten AM."),
    ("We close at 6 p.m.", "We close at six PM."),
    ("We close at 6 p.m. We open at 9.", "We close at six PM. We open at nine."),
    ("From 9am-5pm daily.", "From nine AM to five PM daily."),
    ("From 8:30-10:15.", "From eight thirty to ten fifteen."),
    ("From 2-4 pm.", "From two to four PM."),
    ("The call is at 3 PM EST.", "The call is at three PM EST."),
    ("The call is at 15:30 CET.", "The call is at fifteen thirty CET."),
    ("The call is at 2:30 p.m. e.s.t.", "The call is at two thirty PM EST."),
    ("at 1:00 pm gmt", "at one PM GMT"),
    ("It starts at 14:00 GMT+2.", "It starts at fourteen hundred GMT plus two."),
    ("We use UTC-5.", "We use UTC minus five."),
    ("The race took 2:03:59.", "The race took two hours three minutes and fifty-nine seconds."),
    ("It took 0:45:30.5.", "It took zero hours forty-five minutes and thirty point five seconds."),
    ("Wake at 6.45 am.", "Wake at six forty-five AM."),
    ("March at 0630 hours.", "March at oh six thirty hours."),
    ("Le film is at 20h30.", "Le film is at twenty thirty."),
    ("It is 12:00 noon.", "It is twelve noon."),
    ("The flight is 7h 40m.", "The flight is seven hours and forty minutes."),
    ("The flight is 1 hr 5 min long.", "The flight is one hour and five minutes long."),
    ("A lap of 1m 20s.", "A lap of one minute and twenty seconds."),
    ("From 22:00-06:00.", "From twenty-two hundred to six."),
    ("Lights out at 22:00 hrs.", "Lights out at twenty-two hundred hours."),
    ("From 9am-noon.", "From nine AM to noon."),
    ("It lasts 1 hour 30 min.", "It lasts one hour and thirty minutes."),
    ("We meet at 11 A.M. on Monday.", "We meet at eleven AM on Monday."),
    ("at 5 p.m. Friday", "at five PM Friday"),
]

NOT_READ = [
    "a ratio of 3:1",
    "at 5",
    "I am 5 and you are 7",
    "25:10",
    "1.30 meters",
    "3h",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {"time", "duration"}
