"""Links, mail addresses, paths and handles."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"handle", "hashtag", "identifier", "ip", "link", "mail", "path"}

READ = [
    (
        "Go to https://docs.rust-lang.org/book now.",
        "Go to docs dot rust dash lang dot org slash book now.",
    ),
    ("Our site is acme-shop.de.", "Our site is acme dash shop dot DE."),
    ("mail info@uni-bonn.de", "mail info at uni dash bonn dot DE"),
    ("Ping 10.0.0.1 first.", "Ping one zero dot zero dot zero dot one first."),
    (
        "Open http://localhost:5173/app",
        "Open localhost colon fifty-one seventy-three slash app",
    ),
    ("ssh to 172.16.0.5:22", "ssh to one seven two dot one six dot zero dot five colon twenty-two"),
    ("Edit /etc/hosts carefully.", "Edit slash etc slash hosts carefully."),
    ("Run setup.py.", "Run setup dot PY."),
    ("Ask @jane_doe", "Ask at jane underscore doe"),
    ("Use #OpenSource", "Use hashtag Open Source"),
    (
        "See a.org/x?id=7&y=2",
        "See a dot org slash x question mark id equals seven ampersand y equals two",
    ),
    (
        "Read `response.output_text.delta` first.",
        "Read response dot output underscore text dot delta first.",
    ),
    ("It sets max_tokens.temperature.", "It sets max underscore tokens dot temperature."),
    ("C:\\Temp\\log.txt", "C colon backslash Temp backslash log dot TXT"),
    ("ftp://files.net/a.zip", "FTP colon slash slash files dot net slash a dot zip"),
    ("at ::1 or fe80::2", "at colon colon one or fe eighty colon colon two"),
]

NOT_READ = [
    "The end.It was late.",
    "3.5 of 4.0",
    "and/or",
    "That was max_tokens. Then",
    "a.m. or p.m.",
    "U.S.A.",
    "C++ and std::vector",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_links_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_links(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
