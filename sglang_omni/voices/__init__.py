"""Voices that users bring: cloned, stored and found."""
