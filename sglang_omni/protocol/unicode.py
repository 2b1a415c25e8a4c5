"""A check for valid Unicode text."""


def is_unicode(text: str) -> bool:
    """Return whether `text` can be encoded, that is, has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
