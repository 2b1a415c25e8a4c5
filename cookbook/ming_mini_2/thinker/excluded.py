"""What users are shown, and no training has: the documents' examples, and first prompts."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cookbook.ming_mini.thinker.dialogs import ChatMessage, TextRun
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.speech_tasks import signs_in_words, spoken_form
from cookbook.ming_mini_2.capabilities import STARTERS
from cookbook.ming_mini_2.thinker.dialog import DialogItem

ROOT = Path(__file__).parents[3]
FIRST_PROMPTS = Path(__file__).parent / "evaluation" / "first_prompts.json"
PACKED = ROOT / "sglang_omni" / "checkpoints" / "ming-mini" / "sglang_omni.json"
MIN_CHARACTERS = 6
"""Shorter strings are no prompts: "wav", "Red."."""
_QUOTED = re.compile(r'"([^"\n]+)"|\x27([^\x27\n]+)\x27')
_SUM = re.compile(r"\d+(?: [-+*/] \d+)+")


@dataclass(frozen=True)
class Excluded:
    """Texts that no training item may have, and sums that none may ask for in any wording."""

    texts: frozenset[str]
    sums: frozenset[str] = frozenset()

    def __contains__(self, item: object) -> bool:
        """Return whether an item asks for something excluded, or has it in an earlier turn."""
        if not isinstance(item, Item):
            return False
        if item.about in self.sums:
            return True
        before = item.before if isinstance(item, DialogItem) else ()
        texts = (item.question, item.speech or "", *map(_user_text, before))
        return any(text.strip() in self.texts for text in texts)


def _user_text(message: ChatMessage) -> str:
    if message.role != "user":
        return ""
    return "".join(part.text for part in message.content if isinstance(part, TextRun))


def build_excluded(texts: Iterable[str]) -> Excluded:
    """Exclude these texts, the sums in them, and the spoken forms of both."""
    found = {text.strip() for text in texts if len(text.strip()) >= MIN_CHARACTERS}
    sums = {one for text in found for one in _SUM.findall(text)}
    spoken = {form(text) for text in found for form in (spoken_form, signs_in_words)}
    return Excluded(frozenset(found | spoken), frozenset(sums))


def read_excluded(root: Path = ROOT) -> Excluded:
    """Read the repository's documents, its starter prompts and the list of first prompts.

    Raises `FileNotFoundError` if there is no README.
    """
    documents = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    texts = [text for path in documents for text in quoted_texts(path.read_text("utf-8"))]
    packed = json.loads(PACKED.read_text("utf-8"))["starter_prompts"]
    return build_excluded([*texts, *packed, *STARTERS, *first_prompts()])


def first_prompts() -> list[str]:
    """Return what the user says in the first prompts."""
    entries = json.loads(FIRST_PROMPTS.read_text("utf-8"))
    before = [text for entry in entries for _, text in entry.get("before", ())]
    return [*before, *(entry["prompt"] for entry in entries)]


def quoted_texts(document: str) -> Iterator[str]:
    """Yield what stands in quotes in a document."""
    for double, single in _QUOTED.findall(document):
        yield double or single
