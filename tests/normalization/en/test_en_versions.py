"""Versions of software in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"version"}

READ = [
    ("v2.4.1", "version two point four point one"),
    ("version 3.0.12", "version three point zero point twelve"),
    ("V1.5", "version one point five"),
    ("Python 3.12", "Python three point twelve"),
    ("Java 8.0.25", "Java eight point zero point twenty-five"),
    ("Node 20.11.1", "Node twenty point eleven point one"),
    ("v10", "version ten"),
    ("v0.9-beta", "version zero point nine beta"),
    ("1.0.0-rc.2", "one point zero point zero rc two"),
    ("Kubernetes 1.29", "Kubernetes one point twenty-nine"),
    ("macOS 14.2.1", "macOS fourteen point two point one"),
    ("release 2.15", "release two point fifteen"),
]

NOT_READ = [
    "3.12 miles",
    "version of it",
    "V8 engine",
    "12.5",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_versions_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_versions(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
