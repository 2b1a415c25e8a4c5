"""The talker: its modules, voices, and steps for many streams at once."""
