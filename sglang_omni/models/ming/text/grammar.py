"""The finite-state normaliser for Chinese, loaded once, when it is first needed."""

import threading
from functools import cache
from typing import Protocol


class _Normalizer(Protocol):
    def normalize(self, text: str) -> str:
        """Normalise one text."""


_loading = threading.Lock()
# The reference's grammar writes these with the half-width mark.
_HALF_WIDTH = str.maketrans("！？；", "!?;")


def normalize_chinese(text: str) -> str:
    """Words for the numbers that are left in a Chinese text.

    The grammar is WeText's, as is the reference's. Safe to call from several threads.
    """
    if any(char.isdigit() for char in text):
        # The grammar escapes these two, and nobody hears them.
        text = _normalizer().normalize(text.replace("\\", "").replace('"', ""))
    return text.translate(_HALF_WIDTH)


def _normalizer() -> _Normalizer:
    with _loading:
        return _load()


@cache
def _load() -> _Normalizer:
    from wetext import Normalizer  # 0.3 s and 2 MB of transducers: not before they are needed

    normalizer: _Normalizer = Normalizer(lang="zh", operator="tn")
    normalizer.normalize("一1")
    return normalizer
