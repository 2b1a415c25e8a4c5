"""The queue in front of an engine, and its policy."""
