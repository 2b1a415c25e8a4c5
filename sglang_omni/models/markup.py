"""Remove a chat format's tags from text that clients see, while it is generated."""

from collections.abc import Iterable

# The shortest beginning of a tag that counts as one that the end of the answer cut off. Shorter
# ones may be text: "i <t".
MIN_CUT_CHARACTERS = 3


class MarkupFilter:
    """Removes tags, also those that only come about by the removal of others.

    Text that may be the beginning of a tag is held back: a stack of beginnings, because another tag
    may stand inside one ("<th<think>ink>"). At the end of the answer a beginning of at least
    `MIN_CUT_CHARACTERS` is a tag that was cut, and removed as well. The result does not depend on
    the deltas.
    """

    def __init__(self, tags: Iterable[str]) -> None:
        """Take the tags. Each has one "<", at its beginning."""
        self._tags = frozenset(tags)
        assert all(tag.rfind("<") == 0 for tag in self._tags)
        self._beginnings = {tag[:size] for tag in self._tags for size in range(1, len(tag))}
        self._held: list[str] = []

    def push(self, delta: str) -> list[str]:
        """Return the text that later text cannot change, without tags: one part or none."""
        if not self._held and "<" not in delta:
            return [delta] if delta else []
        text = "".join(map(self._push_character, delta))
        return [text] if text else []

    def finish(self) -> list[str]:
        """Return the text that was held back for a tag that never completed."""
        while self._held and len(self._held[-1]) >= MIN_CUT_CHARACTERS:
            self._held.pop()
        text = self._release()
        return [text] if text else []

    def _push_character(self, character: str) -> str:
        """Return the text that a character settles."""
        if character == "<":
            self._held.append(character)
        elif not self._held:
            return character
        else:
            self._held[-1] += character
            if self._held[-1] in self._tags:
                self._held.pop()
            elif self._held[-1] not in self._beginnings:
                return self._release()
        return ""

    def _release(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        return text
