"""Whole numbers in English words, as the product's text front end writes them."""

_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
ONES = _ONES.split()
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def number_words(number: int) -> str:
    """Return the words of `number`, 0 to 999,999.

    Examples: "forty-two", "one hundred five", "two thousand ten".

    Raises:
        ValueError: The number is outside that range.
    """
    if not 0 <= number < 1_000_000:
        raise ValueError(f"{number} is not between 0 and 999999")
    if number < 1000:
        return _below_thousand(number)
    thousands, rest = divmod(number, 1000)
    head = f"{_below_thousand(thousands)} thousand"
    if not rest:
        return head
    return f"{head}{',' if rest >= 100 else ''} {_below_thousand(rest)}"


def _below_thousand(number: int) -> str:
    if number < 20:
        return ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens - 2] + (f"-{ONES[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    head = f"{ONES[hundreds]} hundred"
    return f"{head} {_below_thousand(rest)}" if rest else head
