"""Collect arriving text until a sentence is long enough to speak."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sglang_omni.models.ming.text.split_text import split_text
from sglang_omni.models.ming.text.tokens import contains_chinese

MIN_FIRST_ELEMENTS = 12
MIN_LATER_ELEMENTS = 8


@dataclass(frozen=True)
class Fragment:
    """A part of the text that is spoken on its own, before normalisation.

    `index` counts the fragments; all fragments of the final flush have the same index. The
    reference streams fragments with index 0 and decodes the others whole.
    """

    text: str
    index: int

    @property
    def is_streamed(self) -> bool:
        """Whether the reference streams this fragment."""
        return self.index == 0


@dataclass
class _Buffer:
    """Elements that are not spoken yet, and the number of spoken fragments."""

    num_spoken: int = 0
    elements: list[str] = field(default_factory=list)

    @property
    def is_ready(self) -> bool:
        """Whether a punctuation mark may end the sentence; the first one must be longer."""
        min_elements = MIN_LATER_ELEMENTS if self.num_spoken else MIN_FIRST_ELEMENTS
        return len(self.elements) >= min_elements

    def take(self) -> str:
        text = "".join(self.elements)
        self.elements = []
        return text


def collect_fragments(
    elements: Iterable[str],
    is_worth_speaking: Callable[[str], bool],
    max_elements: int = sys.maxsize,
) -> Iterator[Fragment]:
    """Yield the fragments of a text that arrives as `elements`: characters, or split deltas.

    What remains at the end is left out unless it is worth speaking. A text without a mark is
    spoken up to the first blank after `max_elements` characters.
    """
    buffer = _Buffer()
    for element in elements:
        is_endless = element == " " and len(buffer.elements) >= max_elements
        if _add_element(buffer, element) or is_endless:
            for text in split_text(buffer.take()):
                yield Fragment(text, buffer.num_spoken)
                buffer.num_spoken += 1
    remaining = buffer.take()
    if is_worth_speaking(remaining):
        for text in split_text(remaining):
            yield Fragment(text, buffer.num_spoken)


def _add_element(buffer: _Buffer, element: str) -> bool:
    """Add an element to the buffer; return whether to speak the buffer now."""
    if element.endswith("\n"):
        if not buffer.elements:
            return False
        buffer.elements += _replace_line_break(buffer.elements, element)
        return buffer.is_ready
    is_ready = buffer.is_ready
    after_number = bool(buffer.elements) and buffer.elements[-1][-1:].isdigit()
    buffer.elements.append(element)
    is_full_stop = element.endswith(".") and not after_number
    return is_ready and (is_full_stop or element.endswith(("！", "？", "。", "，", "!", "?")))


def _replace_line_break(elements: list[str], element: str) -> list[str]:
    """Return what a line break adds: a comma after Chinese, the other blanks otherwise."""
    if not any(map(contains_chinese, elements)):
        return [element[:-1]]  # Usually empty, but it counts as an element.
    return ["，"] if contains_chinese(elements[-1][-1:]) else []
