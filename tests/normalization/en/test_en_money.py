"""Amounts of money in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("It costs $7.", "It costs seven dollars."),
    ("It costs $1.", "It costs one dollar."),
    ("It costs $1.01.", "It costs one dollar and one cent."),
    ("It costs $12.50.", "It costs twelve dollars and fifty cents."),
    ("It costs $0.99.", "It costs ninety-nine cents."),
    ("It costs £1.", "It costs one pound."),
    ("It costs £3.20.", "It costs three pounds and twenty pence."),
    ("It costs £1.01.", "It costs one pound and one penny."),
    ("It costs €5.", "It costs five euros."),
    ("It costs €8,50.", "It costs eight euros and fifty cents."),
    ("It costs ¥900.", "It costs nine hundred yen."),
    ("It costs ₹250.", "It costs two hundred fifty rupees."),
    ("It costs $1,299.", "It costs one thousand two hundred ninety-nine dollars."),
    ("Worth $3.5 million.", "Worth three point five million dollars."),
    ("Worth £20bn.", "Worth twenty billion pounds."),
    ("Worth $750k.", "Worth seven hundred fifty thousand dollars."),
    ("Worth $1.2T.", "Worth one point two trillion dollars."),
    ("Worth HK$20.", "Worth twenty Hong Kong dollars."),
    ("Worth A$13.5.", "Worth thirteen Australian dollars and fifty cents."),
    ("Worth US$5m.", "Worth five million US dollars."),
    ("Worth 40 USD.", "Worth forty US dollars."),
    ("Worth $40 CAD.", "Worth forty Canadian dollars."),
    ("Worth CHF 300.", "Worth three hundred Swiss francs."),
    ("Worth RMB 88.", "Worth eighty-eight yuan."),
    ("Worth 15€.", "Worth fifteen euros."),
    ("Worth 3 million EUR.", "Worth three million euros."),
    ("Just 45¢.", "Just forty-five cents."),
    ("Just 80p.", "Just eighty pence."),
    ("Pay $15-20.", "Pay fifteen to twenty dollars."),
    ("Pay $100-$150.", "Pay one hundred dollars to one hundred fifty dollars."),
    ("Pay €5\u201310 million.", "Pay five to ten million euros."),
    ("Pay $20/hr.", "Pay twenty dollars per hour."),
    ("Pay £9.99/mo now.", "Pay nine pounds and ninety-nine pence per month now."),
    ("Pay $3/person.", "Pay three dollars per person."),
    ("He lost -$40.", "He lost minus forty dollars."),
    ("a $50 fine", "a fifty dollar fine"),
    ("Rs. 700 only.", "seven hundred rupees only."),
    ("Pay $1 to $2 million.", "Pay one to two million dollars."),
    ("Pay $500k to $1 million.", "Pay five hundred thousand dollars to one million dollars."),
    (
        "Pay $1.50-$2.75/hr.",
        "Pay one dollar and fifty cents to two dollars and seventy-five cents per hour.",
    ),
    ("Pay 25¢/min.", "Pay twenty-five cents per minute."),
    ("Pay €1.234,56.", "Pay one thousand two hundred thirty-four euros and fifty-six cents."),
    ("a $5-a-day plan", "a five dollar-a-day plan"),
    ("It fell to -$6.9 million.", "It fell to minus six point nine million dollars."),
]

NOT_READ = [
    "5 dollars",
    "1080p",
    "$HOME",
    "the $ sign",
    "PHP 8",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {"money"}
