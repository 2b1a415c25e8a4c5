"""Edit distance of two sequences, for word errors and spelling."""

from collections.abc import Sequence


def edit_distance(source: Sequence[str], target: Sequence[str]) -> int:
    """Return the Levenshtein distance of the two.

    It is the fewest insertions, deletions and substitutions that lead from one to the other.
    """
    row = list(range(len(target) + 1))
    for number, left in enumerate(source, 1):
        diagonal, row[0] = row[0], number
        for column, right in enumerate(target, 1):
            substituted = diagonal + (left != right)
            diagonal, row[column] = (
                row[column],
                min(substituted, row[column] + 1, row[column - 1] + 1),
            )
    return row[-1]
