"""Finds the field that a client may have meant by an unknown one."""

import difflib
from collections.abc import Sequence

from sglang_omni.protocol.compat.field_rules import FieldRules

# Similarity above which an unknown name is taken for a misspelt known one.
MIN_SIMILARITY = 0.7
# Longer names are not compared, because comparing costs time.
MAX_COMPARED_CHARACTERS = 64


def find_similar_field(rules: FieldRules, path: Sequence[str | int]) -> str | None:
    """Return the known field that is most like the unknown one at `path`, or None."""
    *parents, name = [step for step in path if isinstance(step, str)]
    for parent in parents:
        if parent not in rules.nested:
            return None
        rules = rules.nested[parent]
    if len(name) > MAX_COMPARED_CHARACTERS:
        return None
    similar = difflib.get_close_matches(name, sorted(rules.known), 1, MIN_SIMILARITY)
    return similar[0] if similar else None
