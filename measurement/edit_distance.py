"""How far one sequence is from another, in edits: word errors, and spelling."""

from collections.abc import Sequence


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions between the two (Levenshtein's distance)."""
    row = list(range(len(other) + 1))
    for number, left in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, right in enumerate(other, 1):
            change = before + (left != right)
            before, row[place] = row[place], min(change, row[place] + 1, row[place - 1] + 1)
    return row[-1]
