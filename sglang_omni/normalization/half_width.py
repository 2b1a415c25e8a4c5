"""Full-width letters, digits and signs, as Chinese input methods write them."""

import re

# Full-width punctuation stays: it tells where a sentence pauses.
_PUNCTUATION = "！（），：；？\uff0d\uff0e～"
_HALF_WIDTH: dict[int, int | str] = {
    **{full: full - 0xFEE0 for full in range(0xFF01, 0xFF5F) if chr(full) not in _PUNCTUATION},
    ord("\u3000"): " ",
    ord("￥"): "¥",
    ord("￡"): "£",
    ord("￠"): "¢",
    ord("￦"): "₩",
}
_SIGN_IN_NUMBER = re.compile(r"(?<=[0-9])[：\uff0e\uff0d](?=[0-9])")


def to_half_width(text: str) -> str:
    """Return the text with plain letters, digits and signs; its length is the same."""
    text = text.translate(_HALF_WIDTH)
    return _SIGN_IN_NUMBER.sub(lambda match: chr(ord(match[0]) - 0xFEE0), text)
