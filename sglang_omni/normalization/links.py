"""Links, mail addresses, IP addresses, file paths, handles and hashtags, in both languages."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sglang_omni.normalization.rule import FormStart, Match, Rule


@dataclass(frozen=True)
class LinkWords:
    """How one language speaks the parts of a link.

    Attributes:
        signs: The words of each sign. A sign that is absent is not spoken.
        number: Reads digits within a link or a port: 8080.
        octet: Reads a number of an IP address: 192.
        separator: What stands between two parts.
    """

    signs: Mapping[str, str]
    number: Callable[[str], str]
    octet: Callable[[str], str]
    separator: str = " "


_LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
# A mark belongs to a link only where the link goes on after it.
_SOLID = rf"{_LATIN}0-9/~=&%+_#@$\-"
_BODY = rf"(?:[{_SOLID}]|[.,;:!?*]++(?=[{_SOLID}])|\([A-Za-z0-9_%,.-]{{1,60}}\))"
_PATH = rf"(?:[/?#]{_BODY}*+)?"
_PORT = r"(?::\d{1,5}(?!\d))?"
_LABEL = rf"[{_LATIN}0-9-]{{1,63}}+\."
_NOT_WITHIN = rf"(?<![{_LATIN}0-9_.@/\\-])"

# Without a scheme, a name is a link only by its last part. Country codes that are English words
# ("it", "is", "in") would join two sentences with a missing blank.
_GENERIC_DOMAINS = (
    "com|org|net|edu|gov|mil|info|biz|abc|dev|app|xyz|site|online|shop|store|blog|tech|cloud|wiki|"
    "museum|name|pro|mobi|travel|jobs|news|live|media|design|space|website|page|link"
)
_COUNTRY_DOMAINS = (
    "io|ai|tv|cc|co|uk|de|fr|cn|jp|kr|ru|eu|ca|au|nz|ie|nl|es|pt|pl|cz|sk|hu|ro|bg|gr|tr|se|fi|dk|"
    "ch|lt|lv|ee|ua|by|kz|il|ae|sa|ir|pk|bd|lk|th|vn|sg|ph|hk|tw|mo|br|mx|ar|cl|pe|za|ng|ke|eg|ma|"
    "gl|ly|gg|fm|sh|xyz|sm|rs|hr|si|lu|li|mc|va"
)
_DOMAIN_END = rf"(?:(?i:{_GENERIC_DOMAINS})|{_COUNTRY_DOMAINS})(?![{_LATIN}0-9_-]|\.[A-Za-z0-9])"

_FILE_TYPES = (
    "py|js|ts|jsx|tsx|java|cpp|cc|hpp|rs|go|rb|php|sh|sql|css|html?|xml|json|ya?ml|toml|ini|cfg|"
    "conf|log|md|rst|txt|csv|tsv|pdf|docx?|xlsx?|pptx?|odt|rtf|tex|png|jpe?g|gif|svg|bmp|tiff?|"
    "webp|mp3|mp4|wav|flac|ogg|avi|mov|mkv|zip|tar|gz|rar|7z|exe|dll|iso|apk|dmg|ipynb|bat|env"
)
_FILE_END = rf"\.(?i:{_FILE_TYPES})(?![{_LATIN}0-9_-]|\.[A-Za-z0-9])"
_NODE = r"[A-Za-z0-9_.+-]{1,80}+"

_PARTS = re.compile(rf"[{_LATIN}]+|[0-9]+|[^{_LATIN}0-9]")
# Read letter by letter, or under another name.
_NAMES = {
    name.lower(): name
    for name in (
        "HTTP", "HTTPS", "FTP", "SFTP", "SSH", "WWW", "HTML", "HTM", "CSS", "JS", "TS", "PY", "RB",
        "RS", "SH", "SQL", "PHP", "XML", "CSV", "TSV", "PDF", "TXT", "PNG", "SVG", "API", "URL",
        "MP", "ISO", "DLL", "MD", "CPP", "JSX", "TSX", "CFG", "UK", "DE", "FR", "IT", "CN", "JP",
        "KR", "RU", "EU", "TV", "IO", "AI", "US", "CH", "SM", "NL", "ES",
    )
} | {"jpg": "jpeg", "ppt": "PPT", "pptx": "PPTX", "xls": "XLS", "xlsx": "XLSX"}  # fmt: skip

_URL = re.compile(
    rf"(?<![{_LATIN}0-9])(?:(?:mailto|tel):(?=[\w+])|[A-Za-z][A-Za-z0-9+.-]{{1,15}}?://|www\d?\.)"
    rf"(?:{_BODY})++"
)
_SCHEME = re.compile(r"\Ahttps?://(?=.)", re.IGNORECASE)
_MAIL = re.compile(
    rf"(?<![{_LATIN}0-9_.+&-])[{_LATIN}0-9._%+&-]{{1,64}}+@(?:{_LABEL}){{1,8}}[A-Za-z]{{2,24}}+"
    rf"(?:/{_BODY}*+)?"
)
_IP = re.compile(rf"(?<![A-Za-z0-9_.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\d]|\.\d){_PORT}{_PATH}")
_HEX = "[0-9A-Fa-f]{1,4}"
_IP_6 = re.compile(
    rf"(?<![A-Za-z0-9_:.])(?:{_HEX}(?::{_HEX}){{5,7}}"
    rf"|(?=[\dA-Fa-f:]{{0,30}}\d)(?:{_HEX}(?::{_HEX}){{0,6}})?::(?:{_HEX}(?::{_HEX}){{0,6}})?)"
    r"(?![A-Za-z0-9_:])(?:/\d{1,3}(?!\d))?"
)
_DOMAIN = re.compile(
    rf"{_NOT_WITHIN}(?:(?:{_LABEL}){{1,6}}{_DOMAIN_END}{_PORT}{_PATH}"
    rf"|localhost(?=[:/]){_PORT}{_PATH})"
)
_FILE_PATH = re.compile(
    rf"(?<![{_LATIN}0-9_.@/\\:-])(?:"
    rf"(?:~|\.{{1,2}})(?:/{_NODE}){{1,20}}+/?|(?:/{_NODE}){{2,20}}+/?"
    rf"|[A-Za-z]:\\[A-Za-z0-9_.+\\-]{{0,200}}+"
    rf"|[A-Za-z0-9_-][A-Za-z0-9_/.+-]{{0,199}}?{_FILE_END})"
)
# The name of a field in a program. The underscore tells it from two sentences without a blank.
_FIELD_NAME = re.compile(
    rf"{_NOT_WITHIN}(?=[A-Za-z0-9.]{{1,80}}_[A-Za-z0-9])[A-Za-z]\w{{0,63}}+(?:\.[A-Za-z]\w{{0,63}}+)"
    rf"{{1,8}}(?!\.?[A-Za-z0-9_])",
    re.ASCII,
)
_HANDLE = re.compile(r"(?<![A-Za-z0-9_.@])@[A-Za-z_][A-Za-z0-9_]{0,30}+(?:\.[A-Za-z0-9_]{1,30}+)?")
_HASHTAG = re.compile(rf"(?<![{_LATIN}0-9_#&/])#[{_LATIN}][{_LATIN}0-9_]{{0,60}}+")
# "ThrowbackThursday" is two words.
_CAMEL_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def build_rules(words: LinkWords) -> tuple[Rule, ...]:
    """Return the rules that read links with the words of one language."""
    link, path = partial(_read, words, words.number), partial(_read_path, words)
    anywhere = FormStart.LETTER | FormStart.DIGIT | FormStart.SIGN
    return (
        Rule("link", _URL, link, FormStart.LETTER),
        Rule("mail", _MAIL, link, FormStart.LETTER | FormStart.DIGIT),
        Rule("ip", _IP, partial(_read_ip, words), FormStart.DIGIT),
        Rule("ip", _IP_6, link, anywhere),
        Rule("link", _DOMAIN, link, FormStart.LETTER | FormStart.DIGIT),
        Rule("path", _FILE_PATH, path, anywhere),
        Rule("identifier", _FIELD_NAME, link, FormStart.LETTER),
        Rule("handle", _HANDLE, link, FormStart.SIGN),
        Rule("hashtag", _HASHTAG, partial(_read_hashtag, words), FormStart.SIGN),
    )


def spell_link(link: str, words: LinkWords, number: Callable[[str], str] | None = None) -> str:
    """Read a link part by part: "a.com/b" is "a dot com slash b".

    `number` reads its digits, as `words.number` does if it is None.
    """
    parts = (_spell_part(part, words, number or words.number) for part in _PARTS.findall(link))
    return words.separator.join(part for part in parts if part)


def _spell_part(part: str, words: LinkWords, number: Callable[[str], str]) -> str:
    if part.isdecimal():
        return number(part)
    return _NAMES.get(part, part) if part[0].isalpha() else words.signs.get(part, "")


def _read(words: LinkWords, number: Callable[[str], str], match: Match) -> str:
    """Read a link without its "https://", which tells a listener nothing."""
    return spell_link(_SCHEME.sub("", match[0]), words, number)


def _read_ip(words: LinkWords, match: Match) -> str:
    """Read the address octet by octet, and the port as a number."""
    address, colon, port = match[0].partition(":")
    spoken = spell_link(address, words, words.octet)
    return words.separator.join((spoken, spell_link(colon + port, words))) if colon else spoken


def _read_path(words: LinkWords, match: Match) -> str | None:
    """Read a path; a full stop at its end is that of the sentence."""
    path = match[0]
    if not any(character.isalpha() for character in path):
        return None
    end = "." if path.endswith(".") else ""
    return spell_link(path.rstrip("."), words) + end


def _read_hashtag(words: LinkWords, match: Match) -> str:
    return spell_link(_CAMEL_HUMP.sub(" ", match[0]), words)
