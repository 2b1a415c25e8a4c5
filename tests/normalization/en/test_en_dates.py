"""Dates in English: calendar dates, years, decades, eras and quarters."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("We met on June 5.", "We met on June fifth."),
    ("We met on Jun. 5th, 2019.", "We met on June fifth, twenty nineteen."),
    ("It opens Sept 12, 2024.", "It opens September twelfth, twenty twenty-four."),
    ("Born 3 February 1985.", "Born the third of February nineteen eighty-five."),
    ("On the 21st of March we left.", "On the twenty-first of March we left."),
    ("The 1st of May, 1999 was hot.", "The first of May, nineteen ninety-nine was hot."),
    ("It runs May 5-7, 2024.", "It runs May fifth to seventh, twenty twenty-four."),
    ("It runs 5-7 May 2024.", "It runs the fifth to the seventh of May twenty twenty-four."),
    ("See you Feb 29.", "See you February twenty-ninth."),
    ("on may 5", "on May fifth"),
    ("It happened in August 2010.", "It happened in August twenty ten."),
    ("It happened in Dec. 1999.", "It happened in December nineteen ninety-nine."),
    ("The log of 2023-11-05 is lost.", "The log of November fifth, twenty twenty-three is lost."),
    ("The log of 2023/1/5 is lost.", "The log of January fifth, twenty twenty-three is lost."),
    ("It is due 12/25/2023.", "It is due December twenty-fifth, twenty twenty-three."),
    ("It is due 25/12/2023.", "It is due December twenty-fifth, twenty twenty-three."),
    ("It is due 25.12.2023.", "It is due December twenty-fifth, twenty twenty-three."),
    ("It was 7/4/76 then.", "It was July fourth, seventy-six then."),
    ("Sent 2024-03-01T08:05.", "Sent March first, twenty twenty-four, eight oh five."),
    ("Valid until 06/2027.", "Valid until June twenty twenty-seven."),
    ("The film of 1984 is old.", "The film of nineteen eighty-four is old."),
    ("1984", "nineteen eighty-four"),
    ("Built in 1066 and 1215.", "Built in ten sixty-six and twelve fifteen."),
    ("The 1812 war.", "The eighteen twelve war."),
    ("The years 1861-65 were hard.", "The years eighteen sixty-one to sixty-five were hard."),
    ("From 1914 to 1918.", "From nineteen fourteen to nineteen eighteen."),
    ("It was 2008.", "It was two thousand eight."),
    ("Born in 1905.", "Born in nineteen oh five."),
    ("Back to the 80s.", "Back to the eighties."),
    ("The early '60s were wild.", "The early sixties were wild."),
    ("The 1890s and 1900s.", "The eighteen nineties and nineteen hundreds."),
    ("The 2000s.", "The two thousands."),
    ("He is in his 40s.", "He is in his forties."),
    ("The class of '98.", "The class of ninety-eight."),
    ("Caesar died in 44 BC.", "Caesar died in forty-four BC."),
    ("Around A.D. 70.", "Around AD seventy."),
    ("It was 10,000 B.C. there.", "It was ten thousand BC there."),
    ("c. 1450", "circa fourteen fifty"),
    ("Sales of Q3 2023 fell.", "Sales of the third quarter of twenty twenty-three fell."),
    ("Sales of 1Q22 fell.", "Sales of the first quarter of twenty-two fell."),
    ("Profit of FY2024.", "Profit of fiscal year twenty twenty-four."),
    ("The 2023/24 season.", "The twenty twenty-three twenty-four season."),
    ("Open Mon-Fri.", "Open Monday to Friday."),
    ("Closed on Tues. and Thurs.", "Closed on Tuesday and Thursday."),
    ("From Jan-Mar it snows.", "From January to March it snows."),
    ("In Nov. we moved.", "In November we moved."),
    ("In Oct. 2011 we moved.", "In October twenty eleven we moved."),
    ("Due Monday 3/15.", "Due Monday March fifteenth."),
    ("Sales rose in the '00s.", "Sales rose in the two thousands."),
    ("We left on 15 January. It rained.", "We left on the fifteenth of January. It rained."),
    ("Open mon-fri only.", "Open Monday to Friday only."),
    ("Dated 31/12/2020.", "Dated December thirty-first, twenty twenty."),
    ("The year 1000.", "The year one thousand."),
    ("The 2019-2023 plan.", "The twenty nineteen to twenty twenty-three plan."),
    ("The 2010\u2013present era.", "The twenty ten to present era."),
    ("On Jan 5th '20.", "On January fifth twenty."),
    ("It is 12-31-2020.", "It is December thirty-first, twenty twenty."),
    ("The 1930's.", "The nineteen thirties."),
]

NOT_READ = [
    "you may 5",
    "they march 12 miles",
    "I bought 1035 cans",
    "1,984 cans",
    "1500 m",
    "Sat on it",
    "the Sun is hot",
    "room 204",
    "3/4 of it",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {
        "date",
        "year",
        "decade",
        "era",
        "quarter",
        "month",
        "weekday",
        "fiscal year",
    }
