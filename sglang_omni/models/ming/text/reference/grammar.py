"""The finite-state normaliser for Chinese, loaded when it is first needed."""

import threading
from functools import cache
from typing import Protocol


class _Normalizer(Protocol):
    def normalize(self, text: str) -> str:
        """Normalise one text."""


_load_lock = threading.Lock()
# The reference's grammar writes these marks in half width.
_HALF_WIDTH = str.maketrans("！？；", "!?;")


def normalize_chinese(text: str) -> str:
    """Spell out the remaining numbers in a Chinese text.

    The grammar is WeText's, as in the reference. Thread-safe.
    """
    if any(char.isdigit() for char in text):
        # The grammar escapes these two characters, which are not audible.
        text = _get_normalizer().normalize(text.replace("\\", "").replace('"', ""))
    return text.translate(_HALF_WIDTH)


def _get_normalizer() -> _Normalizer:
    with _load_lock:
        return _load_normalizer()


@cache
def _load_normalizer() -> _Normalizer:
    from wetext import Normalizer  # Takes 0.3 s and 2 MB, so load it only when needed.

    normalizer: _Normalizer = Normalizer(lang="zh", operator="tn")
    normalizer.normalize("一1")
    return normalizer
