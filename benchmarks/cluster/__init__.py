"""A simulator of many callers on many cards, fed with measured times."""
