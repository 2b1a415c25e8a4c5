"""How English text is read."""
