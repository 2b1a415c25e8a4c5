"""Whether a text can be encoded: half of a surrogate pair, which JSON can spell, can not."""


def is_unicode(text: str) -> bool:
    """Return whether `text` can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
