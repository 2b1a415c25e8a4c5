"""Collect arriving text until a sentence is worth speaking."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sglang_omni.models.ming.text.cut import cut
from sglang_omni.models.ming.text.rules import Rules
from sglang_omni.models.ming.text.tokens import contains_chinese

FIRST_ELEMENTS = 12
LATER_ELEMENTS = 8


@dataclass(frozen=True)
class Fragment:
    """A piece to speak on its own, before normalisation.

    `index` counts the fragments; those of the flush at the end all carry the same one. The
    reference streams the fragments with index 0 and decodes the others whole.
    """

    text: str
    index: int

    @property
    def streamed(self) -> bool:
        """Whether the reference streams this fragment."""
        return self.index == 0


@dataclass
class _Buffer:
    """Elements not yet spoken, and how many fragments were."""

    spoken: int = 0
    elements: list[str] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        """Whether a mark may end the sentence: the first one has to be longer."""
        enough = LATER_ELEMENTS if self.spoken else FIRST_ELEMENTS
        return len(self.elements) >= enough

    def take(self) -> str:
        text = "".join(self.elements)
        self.elements = []
        return text


def accumulate(elements: Iterable[str], rules: Rules) -> Iterator[Fragment]:
    """Fragments of a text that arrives as `elements` (characters, or `tokens` of deltas)."""
    buffer = _Buffer()
    for element in elements:
        if _take_in(buffer, element):
            for text in cut(buffer.take()):
                yield Fragment(text, buffer.spoken)
                buffer.spoken += 1
    rest = buffer.take()
    if rules.worth_speaking(rest):
        for text in cut(rest):
            yield Fragment(text, buffer.spoken)


def _take_in(buffer: _Buffer, element: str) -> bool:
    """Add an element to the buffer; whether the buffer is to be spoken now."""
    if element.endswith("\n"):
        if not buffer.elements:
            return False
        buffer.elements += _line_break(buffer.elements, element)
        return buffer.ready
    ready = buffer.ready
    number = bool(buffer.elements) and buffer.elements[-1][-1:].isdigit()
    buffer.elements.append(element)
    dot = element.endswith(".") and not number
    return ready and (dot or element.endswith(("！", "？", "。", "，", "!", "?")))


def _line_break(elements: list[str], element: str) -> list[str]:
    """What a line break adds: a comma after Chinese, its other blanks in another script."""
    if not any(map(contains_chinese, elements)):
        return [element[:-1]]  # usually empty, but it counts as an element
    return ["，"] if contains_chinese(elements[-1][-1:]) else []
