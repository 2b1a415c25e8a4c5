"""Chinese numerals."""

DIGITS = "零一二三四五六七八九"
# What a group of four digits counts: ones, ten thousands, hundred millions, billions.
GROUPS = ("", "万", "亿", "兆")
PLACES = ("", "十", "百", "千")
LONGEST = 4 * len(GROUPS)


def digit_by_digit(digits: str, one: str = "一") -> str:
    """2024: 二零二四. Telephone numbers say 幺 for `one`."""
    return "".join(one if digit == "1" else DIGITS[int(digit)] for digit in digits)


def cardinal(number: str) -> str:
    """A decimal number, perhaps negative, as a quantity; decimals digit by digit."""
    sign = "负" if number.startswith("-") else ""
    whole, _, decimals = number.removeprefix("-").partition(".")
    spoken = sign + _whole(whole)
    return f"{spoken}点{digit_by_digit(decimals)}" if decimals else spoken


def clock_number(digits: str) -> str:
    """Minutes or seconds, two digits: 05 is 零五."""
    digits = digits.zfill(2)
    return digit_by_digit(digits) if digits.startswith("0") else cardinal(digits)


def _whole(digits: str) -> str:
    digits = digits.lstrip("0")
    if len(digits) > LONGEST:
        return digit_by_digit(digits)
    spoken = ""
    for rank in range((len(digits) - 1) // 4, -1, -1):
        end = len(digits) - 4 * rank
        group = digits[max(0, end - 4) : end]
        if int(group):
            # A gap inside the number is heard once: 10,005 is 一万零五.
            gap = "零" if spoken and group.startswith("0") else ""
            spoken += gap + _group(group) + GROUPS[rank]
    spoken = spoken or "零"
    return spoken[1:] if spoken.startswith("一十") else spoken


def _group(group: str) -> str:
    """Up to four digits: 1234 is 一千两百三十四."""
    spoken, gap = "", False
    for place, digit in zip(range(len(group) - 1, -1, -1), group, strict=True):
        if digit == "0":
            gap = bool(spoken)
            continue
        spoken += "零" if gap else ""
        gap = False
        spoken += ("两" if digit == "2" and place >= 2 else DIGITS[int(digit)]) + PLACES[place]
    return spoken
