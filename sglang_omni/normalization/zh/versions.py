"""Versions and network addresses: v1.2.3, iOS 17.5.1, 192.168.1.1:8080."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_digits
from sglang_omni.normalization.zh.patterns import form

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = form(
    rf"(?<![\w.])(?P<address>{_BYTE}(?:\.{_BYTE}){{3}})(?:/(?P<bits>\d{{1,2}})(?!\d))?"
    r"(?::(?P<port>\d{2,5})(?!\d))?(?!\d|\.[A-Za-z0-9])"
)
_VERSION = form(r"(?<![\d.])\d{1,9}(?:\.\d{1,9}){2,6}+(?!\.?\d|\.[A-Za-z])")
# A full stop within digits that no other rule has read.
_PARTS = form(r"(?<=\d)\.(?=\d)")


def _read_address(match: Match) -> str:
    """Read an address digit by digit: 192.168.1.1 is 一九二点一六八点一点一."""
    words = "点".join(map(spell_digits, match["address"].split(".")))
    words += f"斜杠{spell_cardinal(match['bits'])}" if match["bits"] else ""
    return words + (f"冒号{spell_digits(match['port'])}" if match["port"] else "")


def _read_version(match: Match) -> str:
    """Read 17.5.1 as 十七点五点一; a part such as 05 digit by digit."""
    return "点".join(map(_spell_part, match[0].split(".")))


def _spell_part(part: str) -> str:
    has_leading_zero = part[0] == "0" and len(part) > 1
    return spell_digits(part) if has_leading_zero or len(part) > 3 else spell_cardinal(part)


RULES = (
    Rule("address", _ADDRESS, _read_address, FormStart.DIGIT),
    Rule("version", _VERSION, _read_version, FormStart.DIGIT),
    Rule("version", _PARTS, lambda _: "点", FormStart.SIGN),
)
