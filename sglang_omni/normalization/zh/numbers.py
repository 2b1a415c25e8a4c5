"""Chinese numerals."""

from decimal import Decimal

DIGITS = "零一二三四五六七八九"
PLACES = ("", "十", "百", "千")
# How many digits stand right of a scale word; 10^12 is 万亿, "ten thousand of 亿".
SCALES = ((8, "亿"), (4, "万"))
MAX_DIGITS = 16
"""Longer numbers have no usual name and are read digit by digit."""


def spell_digits(digits: str, one: str = "一") -> str:
    """Spell digit by digit: 2024 is 二零二四. Telephone numbers use 幺 for `one`."""
    return "".join(one if digit == "1" else DIGITS[int(digit)] for digit in digits)


def spell_cardinal(number: str) -> str:
    """Spell a decimal number, which may be negative, as a quantity: -12.50 is 负十二点五零."""
    sign = "负" if number[:1] in ("-", "\u2212") else ""
    integer, _, decimals = number.lstrip("-\u2212").replace(",", "").partition(".")
    spoken = sign + _spell_integer(integer)
    return f"{spoken}点{spell_digits(decimals)}" if decimals else spoken


def spell_count(number: str) -> str:
    """Spell how many there are of something: 2 is 两, as in 两个, while 12 is 十二."""
    is_two = number.lstrip("-\u2212").lstrip("0") == "2"
    return spell_cardinal(number).replace("二", "两") if is_two else spell_cardinal(number)


def spell_short(number: str) -> str:
    """Spell a quantity without the noughts at the end of its decimals: 36.00 is 三十六."""
    return spell_count(number.rstrip("0").rstrip(".") if "." in number else number)


def spell_multiple(number: str, power: int) -> str:
    """Spell a number times a power of ten: 1.5 and 6 are 一百五十万."""
    value = Decimal(number.replace(",", "").replace("\u2212", "-")).scaleb(power)
    plain = format(value, "f")
    return spell_short(plain)


def spell_clock_number(digits: str) -> str:
    """Spell minutes or seconds: 05 is 零五, 00 is 零."""
    value = int(digits)
    return f"零{DIGITS[value]}" if 0 < value < 10 else spell_cardinal(digits)


def _spell_integer(digits: str) -> str:
    significant = digits.lstrip("0")
    if len(significant) > MAX_DIGITS:
        return spell_digits(digits)
    spoken = _spell_scaled(significant) if significant else "零"
    if spoken.startswith("一十"):
        return spoken[1:]
    # People say 两百, 两千 and 两万, but 一千二百 and 二十.
    starts_with_two = spoken[:1] == "二" and spoken[1:2] in tuple("百千万亿")
    return f"两{spoken[1:]}" if starts_with_two else spoken


def _spell_scaled(digits: str) -> str:
    """Spell up to sixteen digits, the first of which is not zero."""
    for width, name in SCALES:
        if len(digits) > width:
            high, low = digits[:-width], digits[-width:]
            rest = low.lstrip("0")
            # Zeros within the number are read once: 10,005 is 一万零五.
            gap = "零" if rest and len(rest) < width else ""
            return _spell_scaled(high) + name + gap + (_spell_scaled(rest) if rest else "")
    return _spell_group(digits)


def _spell_group(group: str) -> str:
    """Spell up to four digits: 1234 is 一千二百三十四."""
    spoken, gap = "", False
    for power, digit in zip(range(len(group) - 1, -1, -1), group, strict=True):
        if digit == "0":
            gap = True
            continue
        spoken += ("零" if gap else "") + DIGITS[int(digit)] + PLACES[power]
        gap = False
    return spoken
