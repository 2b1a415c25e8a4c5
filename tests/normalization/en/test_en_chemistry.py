"""Chemical formulas in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"chemistry"}

READ = [
    ("H2O", "H two O"),
    ("CO2", "C O two"),
    ("O2", "O two"),
    ("H2SO4", "H two S O four"),
    ("CH4", "C H four"),
    ("NH3", "N H three"),
    ("C2H5OH", "C two H five O H"),
    ("Na+", "Na plus"),
    ("Fe2O3", "Fe two O three"),
    ("CaCO3", "Ca C O three"),
    ("Mg(OH)2", "Mg O H two"),
    ("H₂O", "H two O"),
    ("N2", "N two"),
]

NOT_READ = [
    "NaCl",
    "OK",
    "He is",
    "No",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_chemistry_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_chemistry(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
