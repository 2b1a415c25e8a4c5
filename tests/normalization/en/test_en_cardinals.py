"""Numbers in English: quantities, digits, signs and scales."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("We sold 1,250 tickets.", "We sold one thousand two hundred fifty tickets."),
    (
        "It has 12,345,678 users.",
        "It has twelve million three hundred forty-five thousand six hundred seventy-eight users.",
    ),
    ("The answer is 42.", "The answer is forty-two."),
    ("Pi is about 3.14159.", "Pi is about three point one four one five nine."),
    ("It is .75 now.", "It is point seven five now."),
    ("It fell to -3 overnight.", "It fell to minus three overnight."),
    ("It rose by +4 points.", "It rose by plus four points."),
    ("A 7.5k view video.", "A seven point five thousand view video."),
    ("The firm has 250k customers.", "The firm has two hundred fifty thousand customers."),
    ("It has 3.2M downloads.", "It has three point two million downloads."),
    ("They raised 10bn.", "They raised ten billion."),
    ("Agent 007 is here.", "Agent zero zero seven is here."),
    ("Dial code 0049 first.", "Dial code zero zero four nine first."),
    ("There were 1 000 000 people.", "There were one million people."),
    ("We got 2.500.000 hits.", "We got two million five hundred thousand hits."),
    ("My 401(k) grew.", "My four oh one k grew."),
    ("Hundreds, even 1000s of fans came.", "Hundreds, even thousands of fans came."),
    ("10s of people and 100s of dogs.", "tens of people and hundreds of dogs."),
    ("All 1's and 0's.", "All ones and zeros."),
    (
        "The mass is 6.6e-11 here.",
        "The mass is six point six times ten to the power of minus eleven here.",
    ),
    (
        "My account is 12345678901.",
        "My account is one two three four five six seven eight nine zero one.",
    ),
    ("About 7000000000 people.", "About seven billion people."),
]

NOT_READ = [
    "a 4K screen",
    "a B2 bomber",
    "7B",
    "covid-19",
    "10 T",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {"quantity", "minus", "plan"}
