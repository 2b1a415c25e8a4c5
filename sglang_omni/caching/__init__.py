"""Bounded caches and helpers for shared work."""
