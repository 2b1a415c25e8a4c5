"""Measurements of this server and of its parts, by subject."""
