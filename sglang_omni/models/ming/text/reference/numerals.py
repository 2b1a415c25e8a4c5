"""Chinese numerals."""

DIGITS = "零一二三四五六七八九"
# Units of the groups of four digits: 1, 10^4, 10^8, 10^12.
GROUPS = ("", "万", "亿", "兆")
PLACES = ("", "十", "百", "千")
MAX_DIGITS = 4 * len(GROUPS)


def spell_digits(digits: str, one: str = "一") -> str:
    """Spell digit by digit: 2024 is 二零二四. Telephone numbers use 幺 for `one`."""
    return "".join(one if digit == "1" else DIGITS[int(digit)] for digit in digits)


def spell_cardinal(number: str) -> str:
    """Spell a decimal number, which may be negative, as a quantity; decimals digit by digit."""
    sign = "负" if number.startswith("-") else ""
    integer, _, decimals = number.removeprefix("-").partition(".")
    spoken = sign + _spell_integer(integer)
    return f"{spoken}点{spell_digits(decimals)}" if decimals else spoken


def spell_clock_number(digits: str) -> str:
    """Spell minutes or seconds as two digits: 05 is 零五."""
    digits = digits.zfill(2)
    return spell_digits(digits) if digits.startswith("0") else spell_cardinal(digits)


def _spell_integer(digits: str) -> str:
    digits = digits.lstrip("0")
    if len(digits) > MAX_DIGITS:
        return spell_digits(digits)
    spoken = ""
    for rank in range((len(digits) - 1) // 4, -1, -1):
        end = len(digits) - 4 * rank
        group = digits[max(0, end - 4) : end]
        if int(group):
            # Zeros within the number are read once: 10,005 is 一万零五.
            gap = "零" if spoken and group.startswith("0") else ""
            spoken += gap + _spell_group(group) + GROUPS[rank]
    spoken = spoken or "零"
    return spoken[1:] if spoken.startswith("一十") else spoken


def _spell_group(group: str) -> str:
    """Spell up to four digits: 1234 is 一千两百三十四."""
    spoken, gap = "", False
    for power, digit in zip(range(len(group) - 1, -1, -1), group, strict=True):
        if digit == "0":
            gap = bool(spoken)
            continue
        spoken += "零" if gap else ""
        gap = False
        spoken += ("两" if digit == "2" and power >= 2 else DIGITS[int(digit)]) + PLACES[power]
    return spoken
