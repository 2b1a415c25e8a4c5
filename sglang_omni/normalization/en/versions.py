"""Versions of software: "v1.2.3" is "version one point two point three"."""

import re

from sglang_omni.normalization.en.numbers import spell_digits, spell_integer
from sglang_omni.normalization.rule import FormStart, Match, Rule

_STAGE = (
    r"(?:[-+.]?(?P<stage>alpha|beta|rc|dev|post|pre|preview|nightly|a|b)"
    r"(?:[-.]?(?P<count>\d{1,3}))?)?"
)
_PARTS = r"\d{1,8}(?:\.(?:\d{1,6}|x(?!\w))){%s}"
_END = r"(?![A-Za-z0-9_%]|\.\d)"
_PREFIXED = re.compile(
    rf"(?<![A-Za-z0-9_.])[vV](?:(?<=v)|(?=\d{{1,4}}\.\d))\.? ?"
    rf"(?P<parts>{_PARTS % '0,5'}){_STAGE}{_END}"
)
# Not a date: 1.2.2024, 2024.1.2.
_CHAIN = re.compile(
    rf"(?<![A-Za-z0-9_.,])(?!\d{{1,2}}\.\d{{1,2}}\.\d{{4}}(?!\d)|\d{{4}}\.\d{{1,2}}\.\d{{1,2}}(?!\d))"
    rf"(?!\d{{2}}\.\d{{2}}\.\d{{2}}(?!\d))(?P<parts>{_PARTS % '2,5'}){_STAGE}{_END}"
)
# A two-digit minor version of these is a number rather than decimals: Python 3.11.
NAMES = (
    "Python|Java|Node|Node.js|Go|Ruby|PHP|Perl|Rust|Django|Rails|React|Angular|Vue|Kubernetes|"
    "Docker|Linux|Windows|macOS|iOS|iPadOS|Android|Chrome|Firefox|Safari|CUDA|PyTorch|TensorFlow|"
    "GCC|Clang|CMake|npm|Unity|Blender|version|release"
)
_MINOR = re.compile(
    rf"(?<![A-Za-z0-9_])(?P<name>(?i:{NAMES})) (?P<parts>\d{{1,3}}\.[1-9]\d){_STAGE}{_END}"
)


def spell_version(parts: str) -> str:
    """Read the parts of a version one by one: "3.10.2" is "three point ten point two"."""
    return " point ".join(_spell_part(part) for part in parts.split("."))


def _spell_part(part: str) -> str:
    if part == "x":
        return part
    is_code = len(part) > 4 or (part.startswith("0") and len(part) > 1)
    return spell_digits(part) if is_code else spell_integer(part)


def _read(match: Match) -> str:
    spoken = spell_version(match["parts"])
    if match["stage"]:
        spoken += f" {match['stage']}"
    return f"{spoken} {spell_integer(match['count'])}" if match["count"] else spoken


def _read_prefixed(match: Match) -> str:
    return f"version {_read(match)}"


def _read_minor(match: Match) -> str:
    return f"{match['name']} {_read(match)}"


RULES = (
    Rule("version", _PREFIXED, _read_prefixed, FormStart.LETTER),
    Rule("version", _CHAIN, _read, FormStart.DIGIT),
    Rule("version", _MINOR, _read_minor, FormStart.LETTER),
)
