"""The names of months and days of the week, and their abbreviations."""

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
MONTH_FORMS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9,
    "oct": 10, "nov": 11, "dec": 12, **{name.lower(): i for i, name in enumerate(MONTHS, 1)},
}  # fmt: skip
# In small letters these are other words.
AMBIGUOUS_MONTHS = frozenset({"may", "march", "mar"})

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAY_FORMS = {
    "mon": 0, "tu": 1, "tue": 1, "tues": 1, "wed": 2, "weds": 2, "th": 3, "thu": 3, "thur": 3,
    "thurs": 3, "fri": 4, "sat": 5, "sun": 6,
}  # fmt: skip


def month_of(form: str) -> int:
    """Return the number of a month by its name or abbreviation, with or without a full stop."""
    return MONTH_FORMS[form.rstrip(".").lower()]
