"""The starter prompts that the bundled model declares, and what is a right answer to each."""

import json
import re

from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.capabilities import FILE

# A new starter needs a pattern here: until then its test fails.
_RIGHT = {
    "What is 17 + 25?": r"\b42\b",
    "What is the capital of France?": r"\bParis\b",
    "How do you spell river?": r"\b[Rr]\W+[Ii]\W+[Vv]\W+[Ee]\W+[Rr]\b",
    # Three sentences or more.
    "Tell me about the sea.": r"\b(?:sea|water)\b(?:[^.!?]*[.!?]){3}",
    "What can you do?": r"\bsums\b.*\bpictures?\b",
}
_REFUSAL = re.compile(r"\b(?:sorry|cannot|can't|do not know)\b")


def declared_starters() -> list[str]:
    """Return the prompts that the bundled checkpoint names, in their order."""
    declared = json.loads((MING_MINI / FILE).read_text(encoding="utf-8"))
    starters: list[str] = declared["starter_prompts"]
    return starters


def answers_rightly(prompt: str, answer: str) -> bool:
    """Whether an answer has in it what is asked for, and no excuse."""
    return bool(re.search(_RIGHT[prompt], answer, re.DOTALL)) and not _REFUSAL.search(answer)
