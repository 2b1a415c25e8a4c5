"""The recipe of Ming-mini's thinker, and of the voices and drawing of its next version."""
