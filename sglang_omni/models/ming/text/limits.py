"""The length of a fragment that the talker can speak in one request."""

from collections.abc import Iterator

MAX_FRAGMENT_UNITS = 50
# Fifty long words. Text with few units but many characters (a word of 4,000 letters, a script
# without units) is split at this length, so that a fragment always fits the talker's context.
MAX_FRAGMENT_CHARACTERS = 400


def split_by_length(text: str) -> Iterator[str]:
    """Split `text` into parts of at most `MAX_FRAGMENT_CHARACTERS`, at a blank where possible."""
    while len(text) > MAX_FRAGMENT_CHARACTERS:
        end = text.rfind(" ", 1, MAX_FRAGMENT_CHARACTERS) + 1 or MAX_FRAGMENT_CHARACTERS
        yield text[:end]
        text = text[end:]
    yield text
