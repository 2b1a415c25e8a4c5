"""Street addresses in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"address"}

READ = [
    ("42 Oak St.", "forty-two Oak Street."),
    (
        "1500 Market St, Denver, CO 80202",
        "fifteen hundred Market Street, Denver, Colorado eight zero two zero two",
    ),
    ("910 W Elm Ave", "nine ten West Elm Avenue"),
    ("77 Sunset Blvd", "seventy-seven Sunset Boulevard"),
    ("at 305 Pine Rd", "at three oh five Pine Road"),
    ("Boston, MA 02110", "Boston, Massachusetts zero two one one zero"),
    ("Reno, NV", "Reno, Nevada"),
    ("Apt. 9", "apartment nine"),
    ("2210 Lake Dr", "twenty-two ten Lake Drive"),
    ("Miami FL 33101", "Miami Florida three three one zero one"),
    ("P.O. Box 7", "P O Box seven"),
    ("16 Park Ln", "sixteen Park Lane"),
    ("Suite 400", "Suite four hundred"),
]

NOT_READ = [
    "Dr. Park",
    "St. Paul",
    "OK, fine",
    "in Maine",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_addresses_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_addresses(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
