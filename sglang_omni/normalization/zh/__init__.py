"""How Chinese text is read."""
